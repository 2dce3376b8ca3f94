"""The model card of a trained network, written from its record: the README.md of a repository on Hugging Face."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from statistics import mean, stdev

from rkcnn.escape import escape_code, escape_markdown
from rkcnn.evaluation.binomial import wilson
from rkcnn.evaluation.weights import NetworkDescription
from rkcnn.model.families import FAMILIES, find_original
from rkcnn.model.period import load_class
from rkcnn.model.spec import ModelSpec, depends_on_data, spec_of
from rkcnn.record.result import Result
from rkcnn.run.settings import INIT_FROM
from rkcnn.use.progress import percent

DATASETS = {
    "mnist": "ylecun/mnist",
    "fashion-mnist": "zalando-datasets/fashion_mnist",
    "cifar10": "uoft-cs/cifar10",
    "cifar100": "uoft-cs/cifar100",
    "svhn": "ufldl-stanford/svhn",
}
"""What Hugging Face calls the data sets that are there, whole."""
SHOWN_CLASSES = 20
RUN_PARTS = 4  # folders of a run's name: data, network, recipe and seed
PAPER = "“Convolutional Neural Networks combined with Runge–Kutta Methods”, Zhu, Chang and Fu"
_PHASE_2 = {
    "E": ["e_i = x_i"],
    "I": ["e_i = I_i(y, e_1 .. e_(i-1), x_(i+1) .. x_s)"],
    "R": ["e_i = I_i(y, x_1 .. x_(i-1), x_(i+1) .. x_s)"],
}


def write_card(
    description: NetworkDescription, result: Result | None, name: str, licence: str, seeds: Sequence[Result] = ()
) -> str:
    """Return the card as Markdown.

    description  of the network and of its images
    result       the record of its training; None where there is none
    name         of the repository, as in OWNER/NAME
    licence      of the weights, as Hugging Face writes it: mit
    seeds        the results of all runs that differ from this one by the seed alone, this one included
    """
    data = describe_data(result.run.data) if result else "images that are not recorded"
    facts = _facts(description, result)
    heading = escape_markdown(f"{description.network}, trained on {data}")
    parts = [
        _front_matter(description, result, licence),
        f"# {heading}\n",
        _describe_network(description.network),
        _describe_error(result, seeds),
        "## Facts\n",
        "\n".join(["| | |", "|---|---|", *(f"| {label} | {value} |" for label, value in facts)]),
        "",
        _describe_use(description, name),
        f"The licence of these weights is {escape_code(licence)}; rkcnn itself has the MIT licence.\n",
    ]
    return "\n".join(parts)


def describe_data(data: str) -> str:
    """Return the name of a run's data without the folders that lead to a user's own images."""
    return re.sub(r"^(folder|npz):.*[/\\]", r"\1:", data)


def describe_start(result: Result) -> str:
    """Return which weights a run started from; empty where these were new ones.

    It is the name of pretrained weights, or the end of the path of a run's folder or file, without the folders that
    lead to it. A record that has no name has the hash of their file.
    """
    checksum = result.run.recipe.initial_weights
    given = str(result.data.get(INIT_FROM, "")) if checksum else ""
    kept = RUN_PARTS + given.endswith(".safetensors")  # a file lies in the folder of its run
    return "/".join(re.split(r"[/\\]", given)[-kept:]) or (f"weights of sha256 {checksum}..." if checksum else "")


def without_folders(result: Result) -> Result:
    """Return a record to give to others: without the folders that lead to images and to the weights it started from."""
    data = {**result.data, **({INIT_FROM: describe_start(result)} if INIT_FROM in result.data else {})}
    return replace(result, run=replace(result.run, data=describe_data(result.run.data)), data=data)


def _front_matter(description: NetworkDescription, result: Result | None, licence: str) -> str:
    lines = [
        "---",
        f"license: {json.dumps(licence)}",
        "library_name: rkcnn",
        "pipeline_tag: image-classification",
        "tags:",
        "- rkcnn",
        "- runge-kutta",
    ]
    if result is not None:
        data = describe_data(result.run.data)
        if data in DATASETS:
            lines += ["datasets:", f"- {DATASETS[data]}"]
        if result.error is not None:
            lines += [
                "model-index:",
                f"- name: {json.dumps(description.network)}",
                "  results:",
                "  - task:",
                "      type: image-classification",
                "    dataset:",
                f"      name: {json.dumps(data)}",
                f"      type: {json.dumps(DATASETS.get(data, data))}",
                f"      split: {result.run.held_out}",
                "    metrics:",
                "    - type: accuracy",
                f"      name: {result.run.held_out} accuracy after the last epoch",
                f"      value: {1 - result.error:.6g}",
            ]
    return "\n".join([*lines, "---", ""])


def _describe_network(name: str) -> str:
    """Return what kind of network this is, with the equation of its time-step."""
    spec = spec_of(name)
    if spec is None:
        original = find_original(name)
        assert original is not None  # a name that is neither is refused before
        about = inspect.getdoc(load_class(original.network)) or ""
        return f"{name} is a network as its own authors published it. {about}\n"
    family = FAMILIES[spec.family]
    foreign = (
        "" if isinstance(family.period, str) else " It is not part of rkcnn: register its class before you load it."
    )
    return (
        f"Its family is {spec.family}: {family.about.replace('the paper', PAPER)}.{foreign} "
        "A period of its time-steps computes\n\n"
        + "".join(f"    {line}\n" for line in _equations(spec))
        + "\nThe layers before, between and after the periods are those of every network of rkcnn.\n"
    )


def _equations(spec: ModelSpec) -> list[str]:
    about = (inspect.getdoc(load_class(FAMILIES[spec.family].period)) or "").partition("\n\n")[0].splitlines()
    if spec.family != "RKCNN":
        return about
    return ["x_i = E_i(y, x_1 .. x_(i-1))", *_PHASE_2[spec.variant], *about]


def _say_images(result: Result) -> str:
    """Return of how many images the error is, with its 95 % interval; nothing where the record doesn't say."""
    images = result.data.get("held_out_images")
    if not images or result.error is None:
        return ""
    low, high = wilson(round(result.error * images), images)
    return f" of {images:,} images (95 % interval {100 * low:.1f} to {100 * high:.1f} %)"


def _describe_error(result: Result | None, seeds: Sequence[Result]) -> str:
    """Return the error after the last epoch, then the best epoch's, and those of other seeds."""
    if result is None:
        return "The record of its training is not with these weights, so nothing is said of its error here.\n"
    held_out, best = result.run.held_out, result.best_epoch
    lines = [f"**The {held_out} error after the last epoch is {percent(result.error)}{_say_images(result)}.**"]
    lines.append(
        f"The lowest of all {len(result.epochs)} epochs is {percent(result.error_best)}, after epoch {best}. That "
        f"epoch is chosen on the {held_out} set, so this number is biased downwards. The weights are those of the last "
        "epoch."
    )
    errors = {each.run.seed: each.error for each in seeds if each.error is not None}
    if len(errors) > 1:
        values = [*errors.values()]
        lines.append(
            f"With seeds {', '.join(map(str, sorted(errors)))} the same run ends at {100 * mean(values):.3f} ± "
            f"{100 * stdev(values):.3f} % (mean ± standard deviation); this is seed {result.run.seed}."
        )
    return " ".join(lines) + "\n"


def _facts(description: NetworkDescription, result: Result | None) -> list[tuple[str, str]]:
    height, width = description.size
    shown = ", ".join(description.classes[:SHOWN_CLASSES]) + ", ..." * (len(description.classes) > SHOWN_CLASSES)
    numbers = ["[" + ", ".join(f"{value:.6g}" for value in each) + "]" for each in (description.mean, description.std)]
    facts = [
        ("network", escape_code(description.network)),
        ("images", f"{height} x {width} pixels, {description.channels} channel{'s' * (description.channels != 1)}"),
        ("normalisation", f"(pixel / 255 - mean) / std with mean = {numbers[0]} and std = {numbers[1]}"),
        ("classes", f"{len(description.classes)}: {escape_markdown(shown)}"),
    ]
    if result is None:
        return facts
    run, end = result.run, result.stretches[-1]
    settings = ", ".join(f"{name} {_write(value)}" for name, value in asdict(run.recipe).items() if name != "name")
    machine = result.machine.get("gpu") or "a CPU"
    least = "at least " * depends_on_data(run.network)
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    checked = "; its content has the published checksums" if result.data.get("verified") else ""
    return [
        *facts,
        ("parameters", f"{result.params:,}"),
        *([("FLOPs of one image", f"{least}{result.flops:,}")] if result.flops is not None else []),
        ("data", escape_markdown(describe_data(run.data)) + checked),
        ("recipe", f"{escape_code(str(run.recipe))}: {escape_markdown(settings)}"),
        *([("started from", escape_markdown(start))] if (start := describe_start(result)) else []),
        ("seed", str(run.seed)),
        ("trained on", f"{escape_markdown(machine)}, in {result.seconds:,.0f} s of training steps"),
        ("versions", escape_markdown(versions)),
        ("code", f"commit {escape_code(end.commit or 'unknown')}, hash of what computes {escape_code(end.source)}"),
    ]


def _write(value: object) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case tuple():
            return "_".join(map(str, value)) or "none"
    return str(value) or "none"


def _describe_use(description: NetworkDescription, name: str) -> str:
    with_timm = (
        ""
        if spec_of(description.network) is None
        else f"""
With timm, `timm.create_model("hf-hub:{name}", pretrained=True)` gives the same network after `import rkcnn.timm`.
"""
    )
    return f"""## Use

Install rkcnn with its extra `hub` (in a clone: `pip install --constraint constraints.txt --editable '.[hub]'`). Then:

```python
import rkcnn

model = rkcnn.Classifier.from_pretrained("{name}")
print(model.predict("picture.png"))  # the classes with their probabilities
logits = model(images)  # uint8 images (N, {description.channels}, {description.size[0]}, {description.size[1]})
```
{with_timm}"""
