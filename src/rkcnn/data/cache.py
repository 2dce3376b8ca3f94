"""A data set decoded once and kept as plain arrays on disk, which open at once as memory maps."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.read.part import Part
from rkcnn.error import InputError

FORMAT = 1
_BLOCK = 4096  # images written at once


@dataclass
class Stored:
    """One part as it lies on disk: files NAME.pixels (N, C, H, W), .labels and perhaps .coarse (int64)."""

    shape: list[int]  # N, H, W, C, as the checksum has it
    pixels: str = ""  # sha256
    labels: str = ""
    coarse: str = ""
    mean: list[float] = field(default_factory=list)  # of pixel / 255, measured
    std: list[float] = field(default_factory=list)


@dataclass
class Catalogue:
    """What a stored set's own description, `set.json`, says."""

    parts: dict[str, Stored]
    classes: list[str]
    verified: bool
    source: str
    fingerprint: str = ""  # of own and unverified images: their files' names, sizes and times when they were read
    format: int = FORMAT


def write(
    root: Path, owner: str, parts: Iterable[tuple[str, Part]], classes: list[str], source: str
) -> tuple[Path, Catalogue]:
    """Writes parts to a temporary folder in `root`, named for the lock's owner; a failure leaves nothing."""
    folder = Path(tempfile.mkdtemp(prefix=f".decoding-{owner}-", dir=root))
    try:
        with ExitStack() as files:
            written: dict[str, _Writing] = {}
            for name, part in parts:
                if name not in written:
                    written[name] = _Writing(folder, name, part, files)
                written[name].add(part, len(classes))
            stored = {name: writing.finish(len(classes)) for name, writing in written.items()}
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, Catalogue(stored, classes, verified=False, source=source)


def keep(folder: Path, catalogue: Catalogue, final: Path) -> None:
    """Gives a written set its description and its name, in place of any older one."""
    try:
        (folder / "set.json").write_text(json.dumps(asdict(catalogue), indent=1))
        folder.chmod(0o755)  # mkdtemp made it private
        if final.exists():
            shutil.rmtree(final)
        folder.rename(final)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def clear_leftovers(root: Path, owner: str) -> None:
    """Removes what a killed process left half-written; call it holding the owner's lock."""
    for folder in root.glob(f".decoding-{owner}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def catalogue_of(folder: Path) -> Catalogue | None:
    """The description of a stored set; None if there is none that can be used."""
    try:
        content: dict[str, Any] = json.loads((folder / "set.json").read_text())
        if content.get("format") != FORMAT:
            return None
        content["parts"] = {name: Stored(**part) for name, part in content["parts"].items()}
        catalogue = Catalogue(**content)
        whole = {"train", "test"} <= set(catalogue.parts) and all(
            _is_whole(folder, name, part) for name, part in catalogue.parts.items()
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return catalogue if whole else None


def _is_whole(folder: Path, name: str, part: Stored) -> bool:
    """Whether each file of the part is there, as long as its shape says."""
    if len(part.shape) != 4 or not all(type(size) is int and size > 0 for size in part.shape):
        return False
    if not len(part.mean) == len(part.std) == part.shape[3] or not all(map(math.isfinite, part.mean + part.std)):
        return False
    sizes = {"pixels": math.prod(part.shape), "labels": 8 * part.shape[0]}
    if part.coarse:
        sizes["coarse"] = sizes["labels"]
    return all((folder / f"{name}.{kind}").stat().st_size == size for kind, size in sizes.items())


def open_part(folder: Path, name: str, shape: list[int], coarse: bool) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pixels (N, C, H, W) as a memory map whose writes never reach the file, and labels."""
    count, height, width, channels = shape
    pixels = np.memmap(folder / f"{name}.pixels", np.uint8, "c", shape=(count, channels, height, width))
    labels = np.fromfile(folder / f"{name}.{'coarse' if coarse else 'labels'}", np.int64)
    return pixels, labels


class _Writing:
    """One part being written, hashed and measured as it goes by."""

    def __init__(self, folder: Path, name: str, first: Part, files: ExitStack) -> None:
        self._shape = first.pixels.shape[1:]
        self._pixels: BinaryIO = files.enter_context((folder / f"{name}.pixels").open("wb"))
        self._folder, self._name = folder, name
        self._sha256 = hashlib.sha256()
        self._counts = np.zeros((self._shape[2], 256), np.int64)
        self._labels: list[NDArray[np.int64]] = []
        self._coarse: list[NDArray[np.int64]] = []

    def add(self, part: Part, classes: int) -> None:
        if part.pixels.shape[1:] != self._shape:
            raise InputError(f"{part.where}: images are {part.pixels.shape[1:]}, and those before {self._shape}")
        if part.labels.min() < 0 or part.labels.max() >= classes:
            given = f"{part.labels.min()} to {part.labels.max()}"
            raise InputError(f"{part.where}: labels run from {given}, and must be 0 to {classes - 1}")
        for start in range(0, len(part.pixels), _BLOCK):
            block = np.ascontiguousarray(part.pixels[start : start + _BLOCK])
            self._sha256.update(block.data)
            self._pixels.write(np.ascontiguousarray(block.transpose(0, 3, 1, 2)).data)
            for channel, counts in enumerate(self._counts):
                counts += np.bincount(block[..., channel].ravel(), minlength=256)
        self._labels.append(part.labels.astype(np.int64))
        if part.coarse is not None:
            self._coarse.append(part.coarse.astype(np.int64))

    def finish(self, classes: int) -> Stored:
        self._pixels.flush()
        labels = np.concatenate(self._labels)
        stored = Stored([len(labels), *self._shape], self._sha256.hexdigest(), _hash(labels, classes))
        labels.tofile(self._folder / f"{self._name}.labels")
        if self._coarse:
            coarse = np.concatenate(self._coarse)
            stored.coarse = _hash(coarse, classes)
            coarse.tofile(self._folder / f"{self._name}.coarse")
        values = np.arange(256) / 255
        for counts in self._counts:
            mean = float(counts @ values / counts.sum())
            stored.mean.append(mean)
            stored.std.append(float((counts @ (values - mean) ** 2 / counts.sum()) ** 0.5))
        return stored


def _hash(labels: NDArray[np.int64], classes: int) -> str:
    return hashlib.sha256(labels.astype(np.uint8 if classes <= 256 else np.int64).data).hexdigest()
