"""Data sets that have been decoded once and are kept as plain arrays on disk, opened as memory maps.

In a data folder, `decoded/NAME` holds `set.json`, its description, and for each of train and test the files
`PART.pixels` (uint8), `PART.labels` and perhaps `PART.coarse` (int64). Every opening takes the sha256 of these files
anew, so that the checksum in a record is that of the pixels that were trained on (docs/data.md).
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Set
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.histogram import mean_and_deviation
from rkcnn.data.read.labelled_pixels import LabelledPixels, hash_labels
from rkcnn.data.sets import DataSet
from rkcnn.disk import open_file
from rkcnn.error import InputError
from rkcnn.json_file import LONG, read_json

FORMAT = 1
_DESCRIPTION = "set.json"
_BLOCK = 4096  # images written or read at once
_HASHED = 256  # images brought into the order of the checksum at once; so many stay in the processor's cache


@dataclass
class PartDescription:
    """The shape, checksums and statistics of a decoded training or test set."""

    shape: list[int]  # N, H, W, C, the order in which the checksum sees the pixels; on disk it is N, C, H, W
    pixels: str = ""  # sha256
    labels: str = ""
    coarse: str = ""
    mean: list[float] = field(default_factory=list)  # of pixel / 255, measured
    std: list[float] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        """The files that the part has: PART.pixels, PART.labels and perhaps PART.coarse."""
        return ["pixels", "labels", *["coarse"] * bool(self.coarse)]


@dataclass
class SetDescription:
    """The content of `set.json`."""

    parts: dict[str, PartDescription]  # train and test
    classes: list[str]
    verified: bool
    source: str
    fingerprint: str = ""  # of own and unverified images: their files' names, sizes and times when they were read
    notes: list[str] = field(default_factory=list)  # what is said whenever own images are used: what was left out
    format: int = FORMAT


def write_parts(
    root: Path, owner: str, parts: Iterable[tuple[str, LabelledPixels]], classes: list[str], source: str
) -> tuple[Path, SetDescription]:
    """Write the images of train and test to a temporary folder in `root`, and return it with its description.

    `owner` names the folder for `clear_leftovers`; `source` says where the images come from. A failure leaves nothing.
    """
    folder = Path(tempfile.mkdtemp(prefix=f".decoding-{owner}-", dir=root))
    try:
        with ExitStack() as files:
            writers: dict[str, _PartWriter] = {}
            for name, images in parts:
                if name not in writers:
                    writers[name] = _PartWriter(folder, name, images, files)
                writers[name].add(images, len(classes))
            described = {name: writer.finish(len(classes)) for name, writer in writers.items()}
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, SetDescription(described, classes, verified=False, source=source)


def move_into_place(folder: Path, description: SetDescription, final: Path) -> None:
    """Write the description into a folder that `write_parts` made and rename it to `final`, replacing an older one."""
    try:
        (folder / _DESCRIPTION).write_bytes(_to_json(description))
        folder.chmod(0o755)  # mkdtemp made it private
        if final.exists():
            shutil.rmtree(final)
        folder.rename(final)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def clear_leftovers(root: Path, owner: str) -> None:
    """Remove what a killed process left half-written; the caller must hold the owner's lock."""
    for folder in root.glob(f".decoding-{owner}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def read_description(folder: Path, needed: Set[str] = frozenset({"train", "test"})) -> SetDescription | None:
    """Return the description of a decoded set; None if it is missing or damaged, or if a file is not complete.

    `needed` are the parts that it must have.
    """
    try:
        content: dict[str, Any] = read_json(folder / _DESCRIPTION, LONG)
        if content.get("format") != FORMAT:
            return None
        content["parts"] = {name: _read_part(part) for name, part in content["parts"].items()}
        description = SetDescription(**content)
        if not all(isinstance(name, str) for name in (*description.classes, description.source, *description.notes)):
            return None
        complete = (
            isinstance(description.classes, list)
            and needed <= set(description.parts)
            and all(_is_complete(folder, name, part) for name, part in description.parts.items())
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return description if complete else None


def _read_part(content: dict[str, Any]) -> PartDescription:
    content.pop("crc32", None)  # an earlier version compared files by it
    return PartDescription(**content)


def _is_complete(folder: Path, name: str, part: PartDescription) -> bool:
    """Return whether each file of the part exists and is as long as its shape says."""
    if len(part.shape) != 4 or not all(type(size) is int and size > 0 for size in part.shape):
        return False
    if not len(part.mean) == len(part.std) == part.shape[3] or not all(map(math.isfinite, part.mean + part.std)):
        return False
    sizes = {"pixels": math.prod(part.shape), "labels": 8 * part.shape[0]}
    if part.coarse:
        sizes["coarse"] = sizes["labels"]
    return all((folder / f"{name}.{kind}").stat().st_size == size for kind, size in sizes.items())


def find_damage(folder: Path, description: SetDescription) -> str:
    """Read the files of a decoded set and return which has changed since it was written, as a sentence; "" if none has.

    They are compared by the sha256 that the description has of them.
    """
    for name, part in description.parts.items():
        if not _is_sound(folder, description, name, part.kinds):
            return f"{folder}: its {name} images or labels have changed since they were decoded"
    return ""


def _is_sound(folder: Path, description: SetDescription, name: str, kinds: list[str]) -> bool:
    """Whether the content of these files of a part is what was decoded."""
    part, classes = description.parts[name], len(description.classes)
    paths = {kind: folder / f"{name}.{kind}" for kind in kinds}
    try:
        return all(_sha256(path, kind, part.shape, classes) == getattr(part, kind) for kind, path in paths.items())
    except (InputError, OSError, ValueError):
        return False


def _sha256(path: Path, kind: str, shape: list[int], classes: int) -> str:
    """Return the checksum of a file's content as the description has it."""
    with open_file(path) as file:
        if kind != "pixels":
            return hash_labels(np.frombuffer(file.read(8 * shape[0]), np.int64), classes)
        count, height, width, channels = shape
        digest, block = hashlib.sha256(), np.empty((_HASHED, height, width, channels), np.uint8)
        stored = np.empty((_HASHED, channels, height, width), np.uint8)
        for start in range(0, count, _HASHED):
            some = min(_HASHED, count - start)
            if file.readinto(stored[:some].data) != stored[:some].nbytes:
                return ""
            for channel in range(channels):  # twice as fast as a transposed copy
                block[:some, ..., channel] = stored[:some, channel]
            digest.update(block[:some].data)
        return digest.hexdigest()


def find_verified(data: DataSet, folders: Iterable[Path]) -> Iterator[tuple[Path, SetDescription]]:
    """Yield each decoded copy of a set with the published checksums in these data folders; see `find_damage`."""
    for folder in folders:
        path = folder / "decoded" / data.decoded
        description = read_description(path)
        if description is not None and description.verified and not list_differences(data, description):
            yield path, description


def list_differences(data: DataSet, description: SetDescription) -> list[str]:
    """Return what of a decoded set isn't as published: its shapes, and every checksum that is known."""
    differences = []
    for name, content in (("train", data.train), ("test", data.test)):
        part = description.parts[name]
        if part.shape != [content.images, *data.shape]:
            differences.append(f"{name} shape {part.shape}")
        known = {"pixels": content.pixels, "labels": content.labels, "coarse": content.coarse}
        differences += [f"{name} {kind} sha256" for kind, sha in known.items() if sha and getattr(part, kind) != sha]
    return differences


def read_test_labels(data: DataSet, folders: Iterable[Path]) -> NDArray[np.int64] | None:
    """Return the test labels (N,) of a set if one of these data folders has a decoded and verified copy of it."""
    kind = "coarse" if data.coarse else "labels"
    for folder, description in find_verified(data, folders):
        if _is_sound(folder, description, "test", [kind]):
            return _read_labels(folder, "test", data.coarse)
    return None


def open_part(folder: Path, name: str, shape: list[int], coarse: bool) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the pixels (N, C, H, W), as a memory map whose writes never reach the file, and the labels."""
    count, height, width, channels = shape
    pixels = np.memmap(folder / f"{name}.pixels", np.uint8, "c", shape=(count, channels, height, width))
    return pixels, _read_labels(folder, name, coarse)


def _read_labels(folder: Path, name: str, coarse: bool) -> NDArray[np.int64]:
    return np.fromfile(folder / f"{name}.{'coarse' if coarse else 'labels'}", np.int64)


class _PartWriter:
    """Writes the images of train or test, and takes their checksum and statistics on the way."""

    def __init__(self, folder: Path, name: str, first: LabelledPixels, files: ExitStack) -> None:
        self._shape = first.pixels.shape[1:]
        self._pixels: BinaryIO = files.enter_context((folder / f"{name}.pixels").open("wb"))
        self._folder, self._name = folder, name
        self._sha256 = hashlib.sha256()
        self._counts = np.zeros((self._shape[2], 256), np.int64)
        self._labels: list[NDArray[np.int64]] = []
        self._coarse: list[NDArray[np.int64]] = []

    def add(self, images: LabelledPixels, classes: int) -> None:
        if images.pixels.shape[1:] != self._shape:
            raise InputError(f"{images.where}: images are {images.pixels.shape[1:]}, and those before {self._shape}")
        if images.labels.min() < 0 or images.labels.max() >= classes:
            given = f"{images.labels.min()} to {images.labels.max()}"
            raise InputError(f"{images.where}: labels run from {given}, and must be 0 to {classes - 1}")
        for start in range(0, len(images.pixels), _BLOCK):
            block = np.ascontiguousarray(images.pixels[start : start + _BLOCK])
            self._sha256.update(block.data)
            self._pixels.write(np.ascontiguousarray(block.transpose(0, 3, 1, 2)).data)
            for channel, counts in enumerate(self._counts):
                counts += np.bincount(block[..., channel].ravel(), minlength=256)
        self._labels.append(images.labels.astype(np.int64))
        if images.coarse is not None:
            self._coarse.append(images.coarse.astype(np.int64))

    def finish(self, classes: int) -> PartDescription:
        self._pixels.flush()
        labels = np.concatenate(self._labels)
        described = PartDescription([len(labels), *self._shape], self._sha256.hexdigest(), hash_labels(labels, classes))
        labels.tofile(self._folder / f"{self._name}.labels")
        if self._coarse:
            coarse = np.concatenate(self._coarse)
            described.coarse = hash_labels(coarse, classes)
            coarse.tofile(self._folder / f"{self._name}.coarse")
        for counts in self._counts:
            mean, deviation = mean_and_deviation(counts)
            described.mean.append(mean)
            described.std.append(deviation)
        return described


def _to_json(description: SetDescription) -> bytes:
    return json.dumps(asdict(description), indent=1).encode()
