"""rkcnn evaluate: shows what a trained network gets wrong, also solved by other methods or on corrupted images."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from rkcnn.cli.data import FromSources, OwnImages
from rkcnn.cli.output import print_line, with_null
from rkcnn.data.options import OwnOptions, Sources
from rkcnn.disk import DiskError
from rkcnn.error import InputError, with_flags
from rkcnn.escape import escape_text

if TYPE_CHECKING:
    from rkcnn.data.images import Images
    from rkcnn.evaluation.metrics import Metrics, Mistake
    from rkcnn.use.load import Classifier
    from rkcnn.use.other_solver import SolverChoice


SHOWN_MISTAKES = 48  # on the contact sheet
ROUNDING = 0.003  # of an error in tf32 or bf16: an answer that is close to another may change with the order of sums
SHOWN_PAIRS = 5  # of classes that are confused most often
OTHER_DATA = "evaluated"  # the folder in a run's folder for pictures of images other than its own
NO_FOLDER = "no pictures: name a folder for them with -o"


def evaluate(
    run: Path,
    /,
    *,
    data: str | None = None,
    with_: Annotated[list[str] | None, Parameter(negative=())] = None,
    corrupt: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
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
        A run's folder, a weights.safetensors, or a name of `rkcnn models --pretrained`.
    data
        A name of `rkcnn data list`, folder:PATH or npz:PATH; by default the images that the run was evaluated on.
    with_
        Solve the network's f by another method and compare: method=dopri5,tol=1e-3 or method=euler,steps=8. Repeatable.
    corrupt
        Measure the error under noise, blur, lost contrast and shifts instead, each in five grades.
    device
        cpu, cuda, cuda:N, or auto: a GPU if there is one.
    output
        The folder for the pictures; by default the run's folder, with images other than the run's a folder in
        `evaluated` there, and none for a name of pretrained weights.
    json_
        Print the metrics as JSON instead of tables.
    """
    from rkcnn.data.progress import Progress
    from rkcnn.record.run import folder_name
    from rkcnn.use.evaluate import read_choice
    from rkcnn.use.held_out import is_set_of, load_other_images, load_tested_images, was_tested_with
    from rkcnn.use.load import find_weights, load
    from rkcnn.use.pretrained.catalogue import find_pretrained

    if with_ and corrupt:
        raise InputError("`with=...` and `corrupt=True` given; give one of the two at a time")
    choices = [read_choice(text) for text in with_ or ()]
    weights, beside = find_weights(run)
    classifier = load(run)
    result = classifier.result
    progress = Progress(sys.stderr)
    if data is not None:
        full_name, images = data, load_other_images(classifier, data, sources, own, progress)
    elif result is not None:
        full_name, images = result.run.data, load_tested_images(result, sources, own, progress)
    else:
        raise InputError(f"{run} has no result beside it that names its data; say which images, as in `data='mnist'`")
    same = result is not None and is_set_of(result, full_name) and was_tested_with(result, images)
    pretrained = find_pretrained(run)
    folder = None if pretrained else weights.parent
    if folder is not None and beside is not None and not same:
        folder = folder / OTHER_DATA / folder_name(full_name)
    trained = result.run.recipe.precision if result else "fp32"
    task = Evaluation(
        classifier,
        images,
        full_name,
        same,
        pretrained.storage.weights if pretrained else trained,
        weights,
        device,
        output or folder,
        output is not None,
        json_,
    )
    if choices:
        report_solvers(task, choices)
    elif corrupt:
        report_corrupted(task)
    else:
        report_metrics(task)


@dataclass(frozen=True)
class Evaluation:
    """What is evaluated, and how the findings are given."""

    classifier: Classifier
    images: Images
    data: str  # the full name of the images' set
    same: bool  # whether these are the images that the run was tested with
    precision: str  # in which the network was trained or, if it is less, in which its weights are kept
    weights: Path
    device: str
    folder: Path | None  # for pictures; None: they are not drawn
    named: bool  # whether that folder was named with -o
    json: bool

    def print_head(self) -> None:
        """Print which network is evaluated on which images."""
        print_line(f"network      {self.classifier.name}, from {self.weights}")
        print_line(f"data         {self.images.name}, {self.images.part}: {len(self.images):,} images")

    def print_json(self, findings: dict[str, Any]) -> None:
        """Print which network is evaluated on which images, and the findings, as JSON."""
        about = {"weights": str(self.weights), "network": self.classifier.name, "data": self.data}
        print(json.dumps(with_null({**about, "classes": self.images.classes, **findings}), indent=1))

    def save(self, write: Callable[[Path], tuple[list[Path], list[str]]]) -> tuple[list[Path], list[str]]:
        """Write pictures into the folder, and return them with notes on those that are missing.

        Where the run's own folder can't be written, a note says so, and what was measured is shown all the same.
        """
        if self.folder is None:
            return [], [NO_FOLDER]
        try:
            return write(self.folder)
        except DiskError as error:
            if self.named:
                raise
            return [], [f"no pictures: {with_flags(str(error))}"]

    def print_notes(self, pictures: Sequence[Path], notes: Sequence[str]) -> None:
        """Print which pictures were written, and why others were not."""
        for path in pictures:
            print_line(f"wrote        {path}")
        for note in notes:
            print_line(f"note         {note}")


def report_metrics(task: Evaluation) -> None:
    """Measure, draw and print what the network gets wrong."""
    from rkcnn.cli.progress import CountProgress
    from rkcnn.use.evaluate import measure_on

    result, images = task.classifier.result, task.images
    with CountProgress(sys.stderr, "images") as progress:
        metrics = measure_on(task.classifier, images, task.device, progress.show)
    pictures, notes = task.save(lambda folder: save_pictures(metrics, images, task.classifier.name, folder))
    if task.json:
        task.print_json({**metrics.as_dict(), "pictures": [str(path) for path in pictures], "notes": notes})
        return
    task.print_head()
    print_metrics(metrics, images.classes)
    if result is not None and result.error is not None and task.same:
        agrees = say_agreement(abs(result.error - metrics.error), metrics.images, task.precision)
        print_line(f"recorded     {100 * result.error:.2f} % when it was trained{agrees}")
    task.print_notes(pictures, notes)


def say_agreement(difference: float, images: int, precision: str) -> str:
    """Return "" for an error that is the recorded one, or what else the difference of the two is."""
    if difference < 0.5 / images:
        return ""
    if precision != "fp32" and difference < ROUNDING:
        return f": the same up to rounding in {precision}"
    return ": NOT THE SAME"


def print_metrics(metrics: Metrics, classes: tuple[str, ...]) -> None:
    """Print the error, the calibration, the error of each class, and the classes that are confused most often."""
    low, high = (100 * bound for bound in metrics.interval)
    print_line(
        f"error        {100 * metrics.error:.2f} % ({metrics.wrong} of {metrics.images:,} wrong), "
        f"95 % interval {low:.2f} to {high:.2f} %"
    )
    print_line(f"balanced     {100 * metrics.balanced_error:.2f} % error if every class counts the same")
    print_line(f"calibration  NLL {metrics.nll:.4f}, expected calibration error {100 * metrics.ece:.2f} %")
    print_line("by class, with F1")
    classes = tuple(map(escape_text, classes))
    width = max(map(len, classes))
    columns = zip(classes, metrics.class_errors, metrics.confusion, metrics.class_f1, strict=True)
    for name, error, row, f1 in columns:
        share = "no images" if error is None else f"{100 * error:6.2f} % of {sum(row)}"
        print_line(f"  {name:{width}}  {share}{'' if f1 is None else f', F1 {f1:.3f}'}")
    pairs = sorted(
        (-count, i, j) for i, row in enumerate(metrics.confusion) for j, count in enumerate(row) if i != j and count
    )
    for number, (count, i, j) in enumerate(pairs[:SHOWN_PAIRS]):
        print_line(f"{'' if number else 'most often':12} {classes[i]} taken for {classes[j]}: {-count}")


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
        from rkcnn.report.figures.evaluation import draw_confusion
        from rkcnn.report.figures.style import save_figure

        paths += save_figure(draw_confusion(metrics.confusion, images.classes, title), folder / "confusion")
    except ImportError:
        notes.append("no confusion matrix drawn: matplotlib is not installed here")
    if metrics.mistakes:
        chosen = [(mistake.image, _caption(mistake, images.classes)) for mistake in metrics.mistakes[:SHOWN_MISTAKES]]
        about = f"the {len(chosen)} worst of {metrics.wrong} mistakes: class, predicted class and its probability"
        save_sheet(draw_chosen(images, chosen, [title, about]), folder / "mistakes.png")
        paths.append(folder / "mistakes.png")
    return paths, notes


def _caption(mistake: Mistake, classes: tuple[str, ...]) -> tuple[str, ...]:
    return classes[mistake.label], f"as {classes[mistake.taken_for]}", f"{100 * mistake.probability:.0f} %"


def report_solvers(task: Evaluation, choices: Sequence[SolverChoice]) -> None:
    """Print the error by each solver beside that of the training's, with what the solves took."""
    from rkcnn.cli.progress import CountProgress
    from rkcnn.use.evaluate import compare_solvers

    with CountProgress(sys.stderr, "images") as progress:
        found = compare_solvers(task.classifier, task.images, choices, task.device, progress.show)
    if task.json:
        task.print_json({"solvers": [{**asdict(each), "metrics": each.metrics.as_dict()} for each in found]})
        return
    task.print_head()
    width = max(len("solver"), *(len(each.solver) for each in found))
    print_line(
        f"{'solver':{width}}  {'error':>9}  {'95 % interval':>17}  changed answers  evaluations of f  not converged"
    )
    for number, each in enumerate(found):
        low, high = (100 * bound for bound in each.metrics.interval)
        interval = f"{low:.2f} to {high:.2f} %"
        changed = "as trained" if number == 0 else f"{100 * each.changed:.2f} %"
        print_line(
            f"{each.solver:{width}}  {100 * each.metrics.error:7.2f} %  {interval:>17}  {changed:>15}  "
            f"{each.evaluations:16.1f}  {100 * each.unconverged:11.2f} %"
        )


def report_corrupted(task: Evaluation) -> None:
    """Print and draw the error under each corruption by its grade."""
    from rkcnn.cli.progress import CountProgress
    from rkcnn.disk import writing_to
    from rkcnn.evaluation.corruption import GRADES
    from rkcnn.report.figures.evaluation import draw_corruptions
    from rkcnn.report.figures.style import save_figure
    from rkcnn.use.evaluate import measure_corrupted

    if task.folder:
        with writing_to(task.folder, "name another folder with -o"):
            task.folder.mkdir(parents=True, exist_ok=True)
    with CountProgress(sys.stderr, "images") as progress:
        clean, errors = measure_corrupted(task.classifier, task.images, task.device, progress.show)
    title = f"{task.classifier.name} on {task.images.name}"
    figure = draw_corruptions(clean, errors, title)
    pictures, notes = task.save(lambda folder: ([*save_figure(figure, folder / "corruptions")], []))
    if task.json:
        written = [str(path) for path in pictures]
        task.print_json({"clean": clean, "corrupted": errors, "pictures": written, "notes": notes})
        return
    task.print_head()
    print_line(f"error        {100 * clean:.2f} % of the clean images")
    grades = "".join(f"{f'grade {grade}':>9}" for grade in GRADES)
    print_line(f"{'error, %':12}{grades}{'mean':>9}")
    for kind, values in errors.items():
        shown = "".join(f"{100 * value:9.2f}" for value in (*values, sum(values) / len(values)))
        print_line(f"  {kind:10}{shown}")
    task.print_notes(pictures, notes)
