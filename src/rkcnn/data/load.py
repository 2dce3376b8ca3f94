"""A data set by name, as two `Images`: one to train on, one to test with."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

import torch

from rkcnn.data import cache
from rkcnn.data.fetch import fetch_set
from rkcnn.data.images import Images
from rkcnn.data.options import OwnOptions, Sources
from rkcnn.data.own_images import PREFIXES, decode_own_images
from rkcnn.data.packaging import PACKAGINGS, files_in_folder
from rkcnn.data.progress import Progress
from rkcnn.data.sets import DataSet, find_set
from rkcnn.error import InputError


def load_data_set(
    name: str, sources: Sources | None = None, own: OwnOptions | None = None, progress: Progress | None = None
) -> tuple[Images, Images]:
    """Return the training set and the test set of a name in `SETS`, of `folder:PATH` or of `npz:PATH`.

    The set is fetched and decoded if it is not on this machine yet. `sources` says where it may come from, `own` how a
    user's own images are read, and `progress` prints what is happening.
    """
    sources, own, progress = sources or Sources(), own or OwnOptions(), progress or Progress()
    if name.startswith(PREFIXES):
        folder, description, own = decode_own_images(name, sources, own, progress)
        training, test = _open_own(name, folder, description, own)
        return training, test
    data = find_set(name)
    options = {"size": own.size, "split": own.split, "skip_bad": own.skip_bad or None, "keys": own.keys}
    options["channels"] = own.channels
    for option, given in options.items():
        if given is not None:
            raise InputError(
                f"`{option}={given}` given with {data.name}; it is for your own images, folder:PATH or npz:PATH"
            )
    if not data.decoded:
        return _load_bundled(data)
    folder, description = fetch_set(data, sources, progress)
    training, test = _open(data.name, folder, description, data.classes, (data.mean, data.std), data.coarse)
    return training, test


def load_test_images(
    name: str, sources: Sources | None = None, own: OwnOptions | None = None, progress: Progress | None = None
) -> Images:
    """Return the test set of a name; see `load_data_set`.

    A user's own images that have no test set, and for which no split is given, are all test images, and `progress` says
    so.
    """
    sources, own, progress = sources or Sources(), own or OwnOptions(), progress or Progress()
    if not name.startswith(PREFIXES):
        return load_data_set(name, sources, own, progress)[1]
    images = _open_own(name, *decode_own_images(name, sources, own, progress, whole=True))
    if len(images) == 1:
        progress.note(f"{name} has no test set of its own: all of its {len(images[0]):,} images are test images")
    return images[-1]


def _open_own(name: str, folder: Path, description: cache.SetDescription, own: OwnOptions) -> list[Images]:
    """Return the decoded training and test set of a user's own images, or the test set if there is no other."""
    measured = description.parts.get("train") or description.parts["test"]
    statistics = tuple(measured.mean), tuple(std or 1.0 for std in measured.std)  # one flat colour has deviation 0
    parts = _open(name, folder, description, tuple(description.classes), statistics, coarse=False)
    return [replace(images, own=own) for images in parts]


def _open(
    name: str,
    folder: Path,
    description: cache.SetDescription,
    classes: tuple[str, ...],
    statistics: tuple[tuple[float, ...], tuple[float, ...]],
    coarse: bool,
) -> list[Images]:
    """Return the decoded training and test set, or the test set if there is no other, memory-mapped."""
    parts = []
    for part in ("train", "test") if "train" in description.parts else ("test",):
        described = description.parts[part]
        pixels, labels = cache.open_part(folder, part, described.shape, coarse)
        tensors = torch.from_numpy(pixels), torch.from_numpy(labels)
        hashes = described.pixels, described.coarse if coarse else described.labels
        parts.append(Images(name, part, *tensors, classes, *statistics, description.verified, *hashes))
    return parts


def _load_bundled(data: DataSet) -> tuple[Images, Images]:
    """Return mnist-mini from the package itself, in 0.1 s; nothing is written anywhere."""
    (packaging,) = PACKAGINGS[data.name]
    with as_file(files("rkcnn.data") / "bundled") as folder:
        found = files_in_folder(folder, packaging.files)
        if found is None:
            raise InputError(f"{data.name}: its files are missing from this installation of rkcnn; install it again")
        parts = []
        for (part, images), content in zip(packaging.read(found, data.limit), (data.train, data.test), strict=True):
            pixels = torch.from_numpy(images.pixels.transpose(0, 3, 1, 2).copy())
            labels = torch.from_numpy(images.labels.astype("int64"))
            hashes = tuple(
                hashlib.sha256(array.astype("u1").tobytes()).hexdigest() for array in (images.pixels, images.labels)
            )
            if hashes != (content.pixels, content.labels):
                raise InputError(f"{data.name}: its files in this installation of rkcnn are damaged; install it again")
            parts.append(Images(data.name, part, pixels, labels, data.classes, data.mean, data.std, True, *hashes))
    return parts[0], parts[1]
