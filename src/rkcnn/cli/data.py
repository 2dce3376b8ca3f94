"""rkcnn data: which data sets there are, fetch one, look at one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from rkcnn.data.own import OwnOptions
from rkcnn.data.sources import Sources
from rkcnn.error import InputError

app = App(name="data", help="Data sets: list them, fetch one, look at one.")

FromSources = Annotated[Sources, Parameter(name="*")]
OwnImages = Annotated[OwnOptions, Parameter(name="*")]


@app.command(name="list")
def list_sets(*, sources: FromSources = Sources()) -> None:  # noqa: B008 (frozen)
    """Every data set: images, classes, size, whether it is here, and where it is from."""
    from rkcnn.data.fetch import find_stored
    from rkcnn.data.files import find_files
    from rkcnn.data.sets import SETS

    sources = replace(sources, unverified=True)
    print(f"{'name':16} {'train':>7} {'test':>7} {'classes':>7}  {'size':11} {'here':10} where from")
    for name, data in SETS.items():
        stored = find_stored(SETS[data.stored], sources) if data.stored else None
        files = next(find_files(data, sources), None) if data.stored else None
        here = "bundled" if not data.stored else "decoded" if stored else "files" if files else "no"
        if stored:
            where = f"{stored[0]}{'' if stored[1].verified else ' (unverified)'}"
        else:
            where = str(files[1]) if files else _origins(name)
        size = " x ".join(map(str, data.shape))
        print(
            f"{name:16} {data.train.images:7} {data.test.images:7} {len(data.classes):7}  {size:11} {here:10} {where}"
        )
    print("Your own images: folder:PATH (train/CLASS/*.png and test/, or CLASS/* with --split) and npz:PATH.")


@app.command
def get(
    name: str,
    /,
    *,
    sources: FromSources = Sources(),  # noqa: B008 (frozen)
    own: OwnImages = OwnOptions(),  # noqa: B008 (frozen)
) -> None:
    """Fetch a data set if it isn't here, check its content, and keep it decoded; check it again if it is.

    Parameters
    ----------
    name
        A name of `rkcnn data list`, folder:PATH or npz:PATH.
    """
    from rkcnn.data.load import load
    from rkcnn.data.progress import Progress

    with _stoppable("the same command continues where it stopped"):
        train, test = load(name, sources, own, Progress(sys.stderr))
        for images in (train, test):
            try:
                images.check()
            except InputError as error:
                raise InputError(f"{error}; delete its folder of `rkcnn data list` and get it again") from None
            print(
                f"{name} {images.part}: {len(images)} images, pixels sha256 {images.pixels_sha256}, "
                f"labels sha256 {images.labels_sha256}, {'as published' if images.verified else 'UNVERIFIED'}"
            )


@app.command
def show(
    name: str,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    part: str = "train",
    validation: int = 0,
    sources: FromSources = Sources(),  # noqa: B008 (frozen)
    own: OwnImages = OwnOptions(),  # noqa: B008 (frozen)
) -> None:
    """Draw a contact sheet by class, with the statistics, as a PNG.

    Parameters
    ----------
    name
        A name of `rkcnn data list`, folder:PATH or npz:PATH.
    output
        The PNG file to write.
    part
        Train, test or validation.
    validation
        Images set apart from the training set by the fixed permutation.
    """
    from rkcnn.data.contact_sheet import describe, draw_sheet, save_sheet
    from rkcnn.data.load import load
    from rkcnn.data.progress import Progress

    with _stoppable("nothing was written"):
        train, test = load(name, sources, own, Progress(sys.stderr))
        parts = {"train": train, "test": test}
        if validation:
            parts["train"], parts["validation"] = train.split(validation)
        if part not in parts:
            raise InputError(f"--part {part}: there are {', '.join(parts)} (validation with --validation N)")
        save_sheet(draw_sheet(parts[part]), output)
        print("\n".join([*describe(parts[part]), f"wrote {output}"]))


def _origins(name: str) -> str:
    from rkcnn.data.sets import SETS

    packages = [f"npm {layout.npm}" for layout in SETS[name].layouts if layout.npm]
    hosts = dict.fromkeys(mirror.split("/")[2] for layout in SETS[name].layouts for mirror in layout.mirrors)
    if not hosts:
        return "this package"
    return ", ".join([*packages, *(f"{host} (never seen working)" for host in hosts)])


@contextmanager
def _stoppable(consequence: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise InputError(f"stopped; {consequence}") from None
