"""rkcnn predict: asks a trained network about pictures."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from rkcnn.cli.data import WholeNumber
from rkcnn.cli.output import print_error, print_line, with_null
from rkcnn.error import InputError, did_you_mean
from rkcnn.escape import escape_text

if TYPE_CHECKING:
    from rkcnn.use.predict import PictureSource, Prediction, Unreadable

OPTIONS = ("--top", "--invert", "--no-invert", "--device", "--json")
SOME_FAILED = 1  # the exit code if some pictures were answered and others could not be read


def predict(
    run: str,
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
    if not run:
        raise InputError("an empty name given for RUN; give the folder of a run or the name of weights")
    if not all(pictures) or not pictures:
        given = "an empty name given for a picture" if pictures else "no picture given"
        raise InputError(f"{given}; give files or folders, or - for a file on standard input")
    classifier = load(run)
    classifier.network.to(pick_device(device))
    sources, bad, skipped = find_all(pictures)
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
            print_line(describe(answer, min(width, 60), recognised=invert is None))
        progress.show(done, len(sources))
    progress.clear()
    if not answers and len(bad) == 1:
        raise InputError(bad[0].reason)
    for line in (*(each.reason for each in bad), *skipped):
        print_error(line)
    if json_ and answers:
        found = {"predictions": [as_dict(answer) for answer in answers], "unreadable": [each._asdict() for each in bad]}
        print(json.dumps(with_null({"network": classifier.name, **found}), indent=1))
    return 0 if not bad else SOME_FAILED if answers else 2


def find_all(names: tuple[str, ...]) -> tuple[list[PictureSource], list[Unreadable], list[str]]:
    """Return the pictures of all files and folders, what there is no picture in, and notes on what is left out."""
    from functools import partial

    from rkcnn.data.picture import find_pictures, read_bytes, read_endless
    from rkcnn.use.predict import PictureSource, Unreadable, list_sources

    sources: list[PictureSource] = []
    bad: list[Unreadable] = []
    skipped: list[str] = []
    for name in names:
        try:
            if name == "-":
                stream = None if sys.stdin is None else sys.stdin.buffer  # None where it is closed
                content = read_endless(stream, name := "standard input")
                sources.append(PictureSource(name, partial(read_bytes, content)))
                continue
            found = find_pictures(Path(name))
            sources += list_sources(found)
            if found.others:
                skipped.append(f"{name}: {describe_skipped(found.others)}")
        except InputError as error:
            bad.append(Unreadable(name, str(error)))
    return sources, bad, skipped


def describe_skipped(files: list[Path]) -> str:
    """Say how many files of a folder are left out because they are no pictures that can be read."""
    from rkcnn.data.read.folder import SUFFIXES

    kinds = Counter(path.suffix.lower() for path in files)
    most = sorted(kinds.items(), key=lambda each: (-each[1], each[0]))[:5]
    some = ", ".join(f"{count:,} {kind or 'without a suffix'}" for kind, count in most)
    return f"{len(files):,} file{'s' * (len(files) != 1)} left out ({some}); {', '.join(SUFFIXES)} are read"


def describe(answer: Prediction, width: int, recognised: bool) -> str:
    """Return a line: the picture, its classes with their probabilities, and whether it was inverted.

    `recognised` says whether the picture decided that, and not the user.
    """
    classes = ", ".join(f"{label} {100 * probability:.1f} %" for label, probability in answer.top)
    inverted = f"  ({'dark on light: ' * recognised}inverted)" * answer.inverted
    return f"{escape_text(answer.picture):{width}}  {classes}{inverted}"


def as_dict(answer: Prediction) -> dict[str, Any]:
    """Return an answer as JSON has it."""
    top = [{"class": label, "probability": probability} for label, probability in answer.top]
    return {"picture": answer.picture, "inverted": answer.inverted, "top": top}
