"""rkcnn evaluate: shows what a trained network gets wrong."""

from __future__ import annotations

import json
import sys
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from rkcnn.cli.data import FromSources, OwnImages
from rkcnn.data.options import OwnOptions, Sources
from rkcnn.error import InputError
from rkcnn.run_folder import RESULT, WEIGHTS

if TYPE_CHECKING:
    from rkcnn.data.images import Images
    from rkcnn.evaluation.metrics import Metrics, Mistake
    from rkcnn.record.result import Result

SHOWN_MISTAKES = 48  # on the contact sheet
SHOWN_PAIRS = 5  # of classes that are confused most often


def evaluate(
    run: Path,
    /,
    *,
    data: str | None = None,
    device: str = "auto",
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    json_: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    sources: FromSources = Sources(),  # noqa: B008 (frozen)
    own: OwnImages = OwnOptions(),  # noqa: B008 (frozen)
) -> None:
    """Evaluate a trained network on every image of a test set: its error, what it confuses, how sure it is.

    Parameters
    ----------
    run
        A run's folder, or a weights.safetensors.
    data
        A name of `rkcnn data list`, folder:PATH or npz:PATH; by default the images that the run was evaluated on.
    device
        cpu, cuda, cuda:N, or auto: a GPU if there is one.
    output
        The folder for the pictures; by default the run's folder.
    json_
        Print the metrics as JSON instead of tables.
    """
    weights, result = find_weights(run)
    if data is None and result is None:
        raise InputError(f"{run} has no result.json beside it that names its data; say --data SET")

    from rkcnn.data.load import load
    from rkcnn.data.progress import Progress
    from rkcnn.evaluation.metrics import measure
    from rkcnn.evaluation.predictor import Predictor
    from rkcnn.evaluation.weights import read_weights
    from rkcnn.run.device import pick_device, set_precision

    chosen = pick_device(device)
    network, card = read_weights(weights)
    if result is not None and result.run.spec != card.network:
        raise InputError(f"{weights} holds {card.network}, but the result beside it is of {result.run.spec}")
    full_name = data or (result.run.data if result else "")
    name, _, validation = full_name.partition("~validation-")
    if data is None and own == OwnOptions() and result is not None:
        own = OwnOptions(**result.data.get("own", {}))  # the images are read as they were for training
    training, images = load(name, sources, own, Progress(sys.stderr))
    if validation:
        _, images = training.split(int(validation))
    same = result is not None and has_same_images(result, full_name, images)
    if data is None and not same:
        raise InputError(
            f"{full_name} as it is loaded now isn't what the run was evaluated on: give the --size, --split and "
            "--skip-bad of its training, or, if its files have changed, --data to evaluate it on other images"
        )
    images = card.prepare(images)
    precision = result.run.recipe.precision if result else "fp32"
    set_precision(precision)
    logits = Predictor(images, chosen, precision).logits(network.to(chosen))
    metrics = measure(logits, images.labels, len(images.classes))
    pictures, notes = save_pictures(metrics, images, card.network, output or weights.parent)
    if json_:
        about = {"weights": str(weights), "network": card.network, "data": full_name, "classes": images.classes}
        values = {**about, **metrics.as_dict(), "pictures": [str(path) for path in pictures]}
        print(json.dumps(with_null(values), indent=1))
        return
    print(f"network      {card.network}, from {weights}")
    print(f"data         {images.name}, {images.part}: {len(images):,} images")
    print_metrics(metrics, images.classes)
    if result is not None and result.error is not None and same:
        agrees = abs(result.error - metrics.error) < 0.5 / metrics.images
        print(f"recorded     {100 * result.error:.2f} % when it was trained{'' if agrees else ': NOT THE SAME'}")
    for line in (*(f"wrote        {path}" for path in pictures), *notes):
        print(line)


def find_weights(run: Path) -> tuple[Path, Result | None]:
    """Return the weight file that a run's folder or a path names, and the result beside it."""
    from rkcnn.record.result import read_result

    folder = run if run.is_dir() else run.parent
    beside = folder / RESULT
    result = read_result(beside) if beside.exists() else None
    if not run.is_dir():
        if not run.exists():
            raise InputError(f"{run} doesn't exist; give a run's folder or its weights.safetensors (see `rkcnn runs`)")
        return run, result
    if result is None:
        raise InputError(f"{run} holds no result.json; give a finished run's folder (see `rkcnn runs`)")
    if not result.finished:
        raise InputError(f"{run} holds no weights to evaluate: the run {result.status}")
    return folder / WEIGHTS, result


def has_same_images(result: Result, full_name: str, images: Images) -> bool:
    """Return whether a run was evaluated on these images, by their name and, where it is recorded, their checksum."""
    return (full_name, images.pixels_sha256) == (result.run.data, result.data.get("test_sha256", images.pixels_sha256))


def with_null(value: Any) -> Any:
    """Return the value with None for every number that is not finite, because JSON has none of those."""
    match value:
        case float():
            return value if isfinite(value) else None
        case dict():
            return {name: with_null(inner) for name, inner in value.items()}
        case list() | tuple():
            return [with_null(inner) for inner in value]
    return value


def print_metrics(metrics: Metrics, classes: tuple[str, ...]) -> None:
    """Print the error, the calibration, the error of each class, and the classes that are confused most often."""
    low, high = (100 * bound for bound in metrics.interval)
    print(
        f"error        {100 * metrics.error:.2f} % ({metrics.wrong} of {metrics.images:,} wrong), "
        f"95 % interval {low:.2f} to {high:.2f} %"
    )
    print(f"calibration  NLL {metrics.nll:.4f}, expected calibration error {100 * metrics.ece:.2f} %")
    print("by class")
    width = max(map(len, classes))
    for name, error, row in zip(classes, metrics.class_errors, metrics.confusion, strict=True):
        share = "no images" if error is None else f"{100 * error:6.2f} % of {sum(row)}"
        print(f"  {name:{width}}  {share}")
    pairs = sorted(
        (-count, i, j) for i, row in enumerate(metrics.confusion) for j, count in enumerate(row) if i != j and count
    )
    for number, (count, i, j) in enumerate(pairs[:SHOWN_PAIRS]):
        print(f"{'' if number else 'most often':12} {classes[i]} taken for {classes[j]}: {-count}")


def save_pictures(metrics: Metrics, images: Images, network: str, folder: Path) -> tuple[list[Path], list[str]]:
    """Draw the confusion matrix and the worst mistakes; return the paths, and notes on what could not be drawn."""
    from rkcnn.data.contact_sheet import draw_chosen, save_sheet
    from rkcnn.disk import writing_to

    with writing_to(folder, "name another folder with -o"):
        folder.mkdir(parents=True, exist_ok=True)
    title = f"{network} on {images.name}: {100 * metrics.error:.2f} % wrong"
    paths: list[Path] = []
    notes: list[str] = []
    try:
        from rkcnn.report.figures.confusion import draw_confusion
        from rkcnn.report.figures.style import save_figure

        paths += save_figure(draw_confusion(metrics.confusion, images.classes, title), folder / "confusion")
    except ImportError:
        notes.append("note         no confusion matrix drawn: matplotlib is not installed here")
    if metrics.worst:
        chosen = [(mistake.image, _caption(mistake, images.classes)) for mistake in metrics.worst[:SHOWN_MISTAKES]]
        about = f"the {len(chosen)} worst of {metrics.wrong} mistakes: class, predicted class, its probability"
        save_sheet(draw_chosen(images, chosen, [title, about]), folder / "mistakes.png")
        paths.append(folder / "mistakes.png")
    return paths, notes


def _caption(mistake: Mistake, classes: tuple[str, ...]) -> str:
    return f"{classes[mistake.label][:9]} as {classes[mistake.taken_for][:9]} {100 * mistake.probability:.0f} %"
