"""rkcnn predict: asks a trained network about pictures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from rkcnn.cli.data import WholeNumber
from rkcnn.cli.evaluate import with_null
from rkcnn.cli.output import print_error, print_line
from rkcnn.error import InputError, did_you_mean
from rkcnn.escape import escape_text

if TYPE_CHECKING:
    from rkcnn.use.predict import PictureSource, Prediction, Unreadable

OPTIONS = ("--top", "--invert", "--no-invert", "--device", "--json")
SOME_FAILED = 1  # the exit code if some pictures were answered and others could not be read


def predict(
    run: Path,
    /,
    *pictures: Annotated[str, Parameter(allow_leading_hyphen=True)],  # a hyphen alone is standard input
    top: WholeNumber = 3,
    invert: bool | None = None,
    device: str = "auto",
    json_: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
) -> int:
    """Say which class each picture is of, with the most probable classes first. Returns the exit code.

    Parameters
    ----------
    run
        A run's folder, a weights.safetensors, or a name of `rkcnn models --pretrained`.
    pictures
        Files (PNG, JPEG, WebP or BMP), folders, which are searched with their subfolders, or - for a file on standard
        input.
    top
        How many classes are named.
    invert
        Exchange dark and light, or don't; by default dark ink on light paper is recognised where the network was
        trained on light on dark, as in MNIST.
    device
        cpu, cuda, cuda:N, or auto: a GPU if there is one.
    json_
        Print the answers as JSON.
    """
    from rkcnn.cli.progress import CountProgress
    from rkcnn.run.device import pick_device
    from rkcnn.use.load import load
    from rkcnn.use.predict import Unreadable, predict_each

    for name in pictures:
        if name.startswith("-") and name != "-" and not Path(name).exists():
            raise InputError(f"no option {name}{did_you_mean(name, OPTIONS)}; options are {', '.join(OPTIONS)}")
    if not pictures:
        raise InputError("no picture given; give files or folders, or - for a file on standard input")
    classifier = load(run)
    classifier.network.to(pick_device(device))
    sources, bad = find_all(pictures)
    progress = CountProgress(sys.stderr if json_ or not sys.stdout.isatty() else None, "pictures")
    answers: list[Prediction] = []
    width = max((len(escape_text(source.name)) for source in sources), default=0)
    for done, answer in enumerate(predict_each(classifier, sources, top, invert), 1):
        if isinstance(answer, Unreadable):
            bad.append(answer)
            continue
        answers.append(answer)
        if not json_:
            progress.clear()
            print_line(describe(answer, min(width, 60)))
        progress.show(done, len(sources))
    progress.clear()
    if not answers and len(bad) == 1:
        raise InputError(bad[0].reason)
    for each in bad:
        print_error(each.reason)
    if json_ and answers:
        found = {"predictions": [as_dict(answer) for answer in answers], "unreadable": [each._asdict() for each in bad]}
        print(json.dumps(with_null({"network": classifier.name, **found}), indent=1))
    return 0 if not bad else SOME_FAILED if answers else 2


def find_all(names: tuple[str, ...]) -> tuple[list[PictureSource], list[Unreadable]]:
    """Return the pictures of all files and folders, and what there is no picture in."""
    from functools import partial

    from rkcnn.data.picture import find_pictures, read_bytes, read_endless
    from rkcnn.use.predict import PictureSource, Unreadable, file_source

    sources: list[PictureSource] = []
    bad: list[Unreadable] = []
    for name in names:
        try:
            if name == "-":
                stream = None if sys.stdin is None else sys.stdin.buffer  # None where it is closed
                content = read_endless(stream, name := "standard input")
                sources.append(PictureSource(name, partial(read_bytes, content)))
                continue
            sources += [file_source(path) for path in find_pictures(Path(name))]
        except InputError as error:
            bad.append(Unreadable(name, str(error)))
    return sources, bad


def describe(answer: Prediction, width: int) -> str:
    """Return a line: the picture, its classes with their probabilities, and whether it was inverted."""
    classes = ", ".join(f"{label} {100 * probability:.1f} %" for label, probability in answer.top)
    return f"{escape_text(answer.picture):{width}}  {classes}{'  (dark on light: inverted)' * answer.inverted}"


def as_dict(answer: Prediction) -> dict[str, Any]:
    """Return an answer as JSON has it."""
    top = [{"class": label, "probability": probability} for label, probability in answer.top]
    return {"picture": answer.picture, "inverted": answer.inverted, "top": top}
