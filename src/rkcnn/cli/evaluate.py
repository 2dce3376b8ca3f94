"""rkcnn evaluate: what a trained network gets wrong."""

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
    from rkcnn.evaluation.metrics import Judgement, Mistake
    from rkcnn.record.result import Result

SHOWN = 48  # mistakes on the contact sheet
PAIRS = 5  # classes most often taken for each other, in words


def evaluate(
    run: Path,
    /,
    *,
    data: str | None = None,
    device: str = "auto",
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    json_: Annotated[bool, Parameter(negative=())] = False,
    sources: FromSources = Sources(),  # noqa: B008 (frozen)
    own: OwnImages = OwnOptions(),  # noqa: B008 (frozen)
) -> None:
    """Ask a trained network about every image of a test set: its error, what it confuses, how sure it is.

    Parameters
    ----------
    run
        A run's folder, or a weights.safetensors.
    data
        A name of `rkcnn data list`, folder:PATH or npz:PATH; the run's own if not given.
    device
        A device: cpu, cuda, cuda:N, or auto: a GPU where there is one.
    output
        Folder for the pictures; the run's own if not given.
    json_
        Print JSON on standard output instead of tables.
    """
    weights, result = find_weights(run)
    if data is None and result is None:
        raise InputError(f"{run} has no result.json beside it that names its data; say --data SET")

    from rkcnn.data.load import load
    from rkcnn.data.progress import Progress
    from rkcnn.evaluation.metrics import judge
    from rkcnn.evaluation.predictor import Predictor
    from rkcnn.evaluation.weights import read_weights
    from rkcnn.run.device import pick_device, set_precision

    place = pick_device(device)
    network, facts = read_weights(weights)
    if result is not None and result.run.spec != facts.network:
        raise InputError(f"{weights} holds {facts.network}, and the run beside it is of {result.run.spec}")
    named = data or (result.run.data if result else "")
    name, _, held = named.partition("~validation-")
    if data is None and own == OwnOptions() and result is not None:
        own = OwnOptions(**result.data.get("own", {}))  # as it was read for training
    training, images = load(name, sources, own, Progress(sys.stderr))
    if held:
        _, images = training.split(int(held))
    same = result is not None and is_of(result, named, images)
    if data is None and not same:
        raise InputError(
            f"{named} as it is loaded now isn't what the run was tested with: give the --size, --split and --skip-bad "
            "of its training, or, if its files have changed, --data to judge it by other images"
        )
    images = facts.fit(images)
    precision = result.run.recipe.precision if result else "fp32"
    set_precision(precision)
    logits = Predictor(images, place, precision).logits(network.to(place))
    judgement = judge(logits, images.labels, len(images.classes))
    pictures, notes = save_pictures(judgement, images, facts.network, output or weights.parent)
    if json_:
        about = {"weights": str(weights), "network": facts.network, "data": named, "classes": images.classes}
        shown = {"pictures": [str(path) for path in pictures]}
        print(json.dumps(finite({**about, **judgement.as_dict(), **shown}), indent=1))
        return
    print(f"network      {facts.network}, from {weights}")
    print(f"data         {images.name}, {images.part}: {len(images):,} images")
    print_judgement(judgement, images.classes)
    if result is not None and result.error is not None and same:
        agrees = abs(result.error - judgement.error) < 0.5 / judgement.images
        print(f"recorded     {100 * result.error:.2f} % when it was trained{'' if agrees else ': NOT THE SAME'}")
    for line in (*(f"wrote        {path}" for path in pictures), *notes):
        print(line)


def find_weights(run: Path) -> tuple[Path, Result | None]:
    """The weight file of a run's folder or path, and the result beside it."""
    from rkcnn.record.result import read_result

    folder = run if run.is_dir() else run.parent
    beside = folder / RESULT
    result = read_result(beside) if beside.exists() else None
    if not run.is_dir():
        if not run.exists():
            raise InputError(f"{run} isn't there; give a run's folder or its weights.safetensors (see `rkcnn runs`)")
        return run, result
    if result is None:
        raise InputError(f"{run} holds no result.json; give a finished run's folder (see `rkcnn runs`)")
    if not result.finished:
        raise InputError(f"{run} holds no weights to evaluate: the run {result.status}")
    return folder / WEIGHTS, result


def is_of(result: Result, named: str, images: Images) -> bool:
    """Whether those are the images that a run was tested with: name and checksum, where the record has one."""
    return (named, images.pixels_sha256) == (result.run.data, result.data.get("test_sha256", images.pixels_sha256))


def finite(value: Any) -> Any:
    """The same with None for every number that JSON has no word for."""
    match value:
        case float():
            return value if isfinite(value) else None
        case dict():
            return {name: finite(inner) for name, inner in value.items()}
        case list() | tuple():
            return [finite(inner) for inner in value]
    return value


def print_judgement(judgement: Judgement, classes: tuple[str, ...]) -> None:
    low, high = (100 * bound for bound in judgement.interval)
    print(
        f"error        {100 * judgement.error:.2f} % ({judgement.wrong} of {judgement.images:,} wrong), "
        f"95 % interval {low:.2f} to {high:.2f} %"
    )
    print(f"calibration  NLL {judgement.nll:.4f}, expected calibration error {100 * judgement.ece:.2f} %")
    print("by class")
    width = max(map(len, classes))
    for name, error, row in zip(classes, judgement.class_errors, judgement.confusion, strict=True):
        share = "no images" if error is None else f"{100 * error:6.2f} % of {sum(row)}"
        print(f"  {name:{width}}  {share}")
    pairs = sorted(
        (-count, i, j) for i, row in enumerate(judgement.confusion) for j, count in enumerate(row) if i != j and count
    )
    for number, (count, i, j) in enumerate(pairs[:PAIRS]):
        print(f"{'' if number else 'most often':12} {classes[i]} taken for {classes[j]}: {-count}")


def save_pictures(judgement: Judgement, images: Images, network: str, folder: Path) -> tuple[list[Path], list[str]]:
    """The confusion matrix and the worst mistakes; paths, and a line about what could not be drawn."""
    from rkcnn.data.contact_sheet import draw_chosen, save_sheet
    from rkcnn.disk import writing_to

    with writing_to(folder, "name another folder with -o"):
        folder.mkdir(parents=True, exist_ok=True)
    title = f"{network} on {images.name}: {100 * judgement.error:.2f} % wrong"
    paths: list[Path] = []
    notes: list[str] = []
    try:
        from rkcnn.report.confusion import draw_confusion
        from rkcnn.report.picture import save_figure

        paths += save_figure(draw_confusion(judgement.confusion, images.classes, title), folder / "confusion")
    except ImportError:
        notes.append("note         no confusion matrix drawn: matplotlib is not installed here")
    if judgement.worst:
        chosen = [(mistake.image, _caption(mistake, images.classes)) for mistake in judgement.worst[:SHOWN]]
        about = f"the {len(chosen)} surest of {judgement.wrong} mistakes: what it is, what it was taken for, how surely"
        save_sheet(draw_chosen(images, chosen, [title, about]), folder / "mistakes.png")
        paths.append(folder / "mistakes.png")
    return paths, notes


def _caption(mistake: Mistake, classes: tuple[str, ...]) -> str:
    return f"{classes[mistake.label][:9]} as {classes[mistake.taken_for][:9]} {100 * mistake.probability:.0f} %"
