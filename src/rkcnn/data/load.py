"""A data set by name, as two `Images`: one to train on, one to test with."""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

import torch

from rkcnn.data import cache
from rkcnn.data.fetch import obtain
from rkcnn.data.files import shelf_in
from rkcnn.data.images import Images
from rkcnn.data.own import OwnOptions
from rkcnn.data.own_images import obtain_own
from rkcnn.data.packaging import BUNDLED
from rkcnn.data.progress import Progress
from rkcnn.data.sets import SETS, DataSet
from rkcnn.data.sources import Sources
from rkcnn.error import InputError


def load(
    name: str, sources: Sources | None = None, own: OwnOptions | None = None, progress: Progress | None = None
) -> tuple[Images, Images]:
    """(training set, test set) of a name in `SETS`, of `folder:PATH` or of `npz:PATH`.

    Fetched and decoded if it isn't there yet, opened at once if it is; the two share nothing.
    """
    sources, own, progress = sources or Sources(), own or OwnOptions(), progress or Progress()
    if name.startswith(("folder:", "npz:")):
        folder, catalogue = obtain_own(name, sources, own, progress)
        means, deviations = catalogue.parts["train"].mean, catalogue.parts["train"].std
        statistics = tuple(means), tuple(std or 1.0 for std in deviations)  # one flat colour has no deviation
        training, test = _open(name, folder, catalogue, tuple(catalogue.classes), statistics, coarse=False)
        return replace(training, own=own), replace(test, own=own)
    data = find(name)
    if data.name == "mnist-mini":
        return _bundled(data)
    folder, catalogue = obtain(data, sources, progress)
    return _open(name, folder, catalogue, data.classes, (data.mean, data.std), data.coarse)


def find(name: str) -> DataSet:
    """The set of that name, or a sentence with the names there are."""
    if name not in SETS:
        near = difflib.get_close_matches(name, SETS, 1)
        hint = f"did you mean {near[0]}? There are" if near else "there are"
        raise InputError(f"no data set is called {name!r}; {hint} {', '.join(SETS)}, folder:PATH and npz:PATH")
    return SETS[name]


def _open(
    name: str,
    folder: Path,
    catalogue: cache.Catalogue,
    classes: tuple[str, ...],
    statistics: tuple[tuple[float, ...], tuple[float, ...]],
    coarse: bool,
) -> tuple[Images, Images]:
    parts = []
    for part in ("train", "test"):
        stored = catalogue.parts[part]
        pixels, labels = cache.open_part(folder, part, stored.shape, coarse)
        tensors = torch.from_numpy(pixels), torch.from_numpy(labels)
        hashes = stored.pixels, stored.coarse if coarse else stored.labels
        parts.append(Images(name, part, *tensors, classes, *statistics, catalogue.verified, *hashes))
    return parts[0], parts[1]


def _bundled(data: DataSet) -> tuple[Images, Images]:
    """mnist-mini, out of the package itself: 0.1 s, and nothing is written anywhere."""
    with as_file(files("rkcnn.data") / "bundled") as folder:
        shelf = shelf_in(folder, BUNDLED.files)
        if shelf is None:
            raise InputError("mnist-mini: its files are missing from this installation of rkcnn; install it again")
        parts = []
        for (part, read), content in zip(BUNDLED.read(shelf, data.limit), (data.train, data.test), strict=True):
            pixels, labels = (
                torch.from_numpy(read.pixels.transpose(0, 3, 1, 2).copy()),
                torch.from_numpy(read.labels.astype("int64")),
            )
            hashes = tuple(
                hashlib.sha256(array.astype("u1").tobytes()).hexdigest() for array in (read.pixels, read.labels)
            )
            if hashes != (content.pixels, content.labels):
                raise InputError("mnist-mini: its files in this installation of rkcnn are damaged; install it again")
            parts.append(Images(data.name, part, pixels, labels, data.classes, data.mean, data.std, True, *hashes))
    return parts[0], parts[1]
