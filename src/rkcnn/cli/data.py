"""rkcnn data: list the data sets, fetch one, look at one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter, Token

from rkcnn.cli.output import print_line
from rkcnn.data.options import OwnOptions, Sources
from rkcnn.error import InputError

app = App(name="data", help="Data sets: list them, fetch one, look at one.")

FromSources = Annotated[Sources, Parameter(name="*")]


def read_whole_number(_: Any, tokens: Sequence[Token]) -> int:
    """Return an option's text as a whole number; by itself Cyclopts would round 0.2 to 0."""
    text = tokens[0].value
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f"{text} is not a whole number")
    return int(text)


def read_size(_: Any, tokens: Sequence[Token]) -> int | str:
    """Return an option's text as a whole number, or the word auto."""
    return "auto" if tokens[0].value == "auto" else read_whole_number(_, tokens)


WholeNumber = Annotated[int, Parameter(converter=read_whole_number)]


@dataclass(frozen=True)
class OwnFlags(OwnOptions):  # options whose whole numbers Cyclopts doesn't round
    __doc__ = OwnOptions.__doc__
    size: Annotated[int | Literal["auto"] | None, Parameter(converter=read_size)] = None
    max_bytes: WholeNumber = OwnOptions.max_bytes
    channels: Annotated[Literal[1, 3] | None, Parameter(converter=read_whole_number)] = None


if TYPE_CHECKING:
    OwnImages = OwnOptions
else:
    OwnImages = Annotated[OwnFlags, Parameter(name="*")]


@app.command(name="list")
def list_sets(*, sources: FromSources = Sources()) -> None:  # noqa: B008 (frozen)
    """List every data set: images, classes, size, whether it is on this machine, and where it comes from."""
    from rkcnn.data.fetch import find_decoded
    from rkcnn.data.packaging import find_copies
    from rkcnn.data.sets import SETS

    sources = replace(sources, unverified=True)
    print_line(f"{'name':16} {'train':>7} {'test':>7} {'classes':>7}  {'size':11} {'here':10} where from")
    for name, data in SETS.items():
        decoded = next(find_decoded(SETS[data.decoded], sources), None) if data.decoded else None
        copy = next(find_copies(data, sources), None) if data.decoded else None
        here = "bundled" if not data.decoded else "decoded" if decoded else "files" if copy else "no"
        if decoded:
            where = f"{decoded[0]}{'' if decoded[1].verified else ' (unverified)'}"
        else:
            where = str(copy[1]) if copy else _list_sources(name)
        size = " x ".join(map(str, data.shape))
        print_line(
            f"{name:16} {data.train.images:7} {data.test.images:7} {len(data.classes):7}  {size:11} {here:10} {where}"
        )
    print_line("Your own images: folder:PATH (train/CLASS/*.png and test/, or CLASS/* with --split) and npz:PATH.")


@app.command
def get(
    name: str,
    /,
    *,
    sources: FromSources = Sources(),  # noqa: B008 (frozen)
    own: OwnImages = OwnOptions(),  # noqa: B008 (frozen)
) -> None:
    """Fetch a data set if it isn't on this machine, check its content and keep it decoded; if it is, check it again.

    Parameters
    ----------
    name
        A name of `rkcnn data list`, folder:PATH or npz:PATH.
    """
    from rkcnn.data.load import load_data_set
    from rkcnn.data.progress import Progress

    with _stoppable("the same command continues where it stopped"):
        train, test = load_data_set(name, sources, own, Progress(sys.stderr))
        for images in (train, test):
            try:
                images.check()
            except InputError as error:
                raise InputError(
                    f"{error}; delete its folder, which `rkcnn data list` shows, and get it again"
                ) from None
            print_line(
                f"{name} {images.part}: {len(images)} images, {images.origin}, "
                f"pixels sha256 {images.pixels_sha256}, labels sha256 {images.labels_sha256}"
            )


@app.command
def show(
    name: str,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    part: str = "train",
    validation: WholeNumber = 0,
    sources: FromSources = Sources(),  # noqa: B008 (frozen)
    own: OwnImages = OwnOptions(),  # noqa: B008 (frozen)
) -> None:
    """Draw a contact sheet, a row of images for each class, as a PNG, and print the statistics.

    Parameters
    ----------
    name
        A name of `rkcnn data list`, folder:PATH or npz:PATH.
    output
        The PNG file to write.
    part
        The part to show: train, test or validation.
    validation
        Number of images set apart from the training set, by a fixed permutation.
    """
    from rkcnn.data.contact_sheet import describe, draw_sheet, save_sheet
    from rkcnn.data.load import load_data_set
    from rkcnn.data.progress import Progress

    with _stoppable("nothing was written"):
        train, test = load_data_set(name, sources, own, Progress(sys.stderr))
        parts = {"train": train, "test": test}
        if validation:
            parts["train"], parts["validation"] = train.split(validation)
        if part not in parts:
            raise InputError(f"`part={part}`: there are {', '.join(parts)} (validation with `validation=N`)")
        save_sheet(draw_sheet(parts[part]), output)
        for line in (*describe(parts[part]), f"wrote {output}"):
            print_line(line)


def _list_sources(name: str) -> str:
    """Return where a set can be fetched from."""
    from rkcnn.data.packaging import PACKAGINGS
    from rkcnn.data.sets import SETS

    packages = [f"npm {packaging.npm}" for packaging in PACKAGINGS[name] if packaging.npm]
    if SETS[name].debian:
        packages.append(f"apt-get install {SETS[name].debian} (Debian)")
    hosts = dict.fromkeys(mirror.split("/")[2] for packaging in PACKAGINGS[name] for mirror in packaging.mirrors)
    if not hosts:
        return "this package"
    return ", ".join([*packages, *(f"{host} (untested)" for host in hosts)])


@contextmanager
def _stoppable(consequence: str) -> Iterator[None]:
    """Turn Ctrl-C in the block into an InputError that says what follows from it."""
    try:
        yield
    except KeyboardInterrupt:
        raise InputError(f"stopped; {consequence}") from None
