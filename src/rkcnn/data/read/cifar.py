"""CIFAR in its three published forms: binary rows, pickled batches, and sheets of PNG with labels as JSON."""

from __future__ import annotations

import io
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.read.folder import open_image
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.data.read.plain_pickle import read_plain_pickle
from rkcnn.error import InputError
from rkcnn.json_file import parse_json

SIDE = 32
PIXELS = 3 * SIDE * SIDE  # bytes of an image: three planes of 1,024
MOST_JSON = 1 << 20  # bytes; 50,000 labels take 100,000, and "[]," becomes 21 times itself in memory


def read_cifar_binary(file: BinaryIO, where: str, limit: int, label_bytes: int) -> LabelledPixels:
    """Read the rows of a .bin file: a label, then three planes of pixels.

    CIFAR-100 has two label bytes, first the coarse label, then the fine one.
    """
    row = label_bytes + PIXELS
    size = _size(file)
    if size == 0 or size % row:
        raise InputError(f"{where}: {size} bytes are not a whole number of rows of {row}; it is truncated or not CIFAR")
    rows = np.frombuffer(_read_all(file, where, limit), np.uint8).reshape(-1, row)
    labels = rows[:, :label_bytes]
    coarse = labels[:, 0] if label_bytes == 2 else None
    return LabelledPixels(where, _images(rows[:, label_bytes:]), labels[:, -1], coarse)


def read_cifar_pickle(file: BinaryIO, where: str, limit: int) -> LabelledPixels:
    """Read a pickled dict of `data` (N, 3072) and `labels`, or `fine_labels` and `coarse_labels`."""
    content = read_plain_pickle(_read_all(file, where, limit), where)
    if not isinstance(content, dict):
        raise InputError(f"{where}: holds a {type(content).__name__}, and a CIFAR batch is a dict")
    named = {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in content.items()}
    data = named.get("data")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != PIXELS:
        raise InputError(f"{where}: has no `data` of uint8 (N, {PIXELS}), and a CIFAR batch has")
    fine, coarse = ("fine_labels", "coarse_labels") if "fine_labels" in named else ("labels", "")
    return LabelledPixels(
        where,
        _images(data),
        _pickled_labels(named, fine, where),
        _pickled_labels(named, coarse, where) if coarse else None,
    )


def read_png_sheet(file: BinaryIO, labels: NDArray[np.int64], where: str, limit: int) -> LabelledPixels:
    """Read a whole batch that is one RGB image, each row of which holds the pixels of one CIFAR image."""
    with open_image(file, where, limit, ("PNG",)) as sheet:
        if sheet.size[0] != SIDE * SIDE or sheet.mode != "RGB":
            raise InputError(
                f"{where}: is {sheet.mode}, {sheet.size[0]} pixels wide; a sheet is RGB, {SIDE * SIDE} wide"
            )
        sheet.load()
        pixels = np.asarray(sheet)
    return LabelledPixels(where, pixels.reshape(-1, SIDE, SIDE, 3), labels)


def read_json_labels(file: BinaryIO, where: str) -> NDArray[np.int64]:
    """Read a JSON list of whole numbers from 0 to 255."""
    if _size(file) > MOST_JSON:
        raise InputError(f"{where}: holds {_size(file)} bytes, and labels take {MOST_JSON} at most")
    try:
        labels = parse_json(file.read(), list)
    except ValueError as error:
        raise InputError(f"{where}: is not readable as JSON ({error})") from None
    if not _are_labels(labels):
        raise InputError(f"{where}: must be a list of whole numbers 0 to 255")
    return np.array(labels, np.int64)


def _pickled_labels(named: dict[object, object], key: str, where: str) -> NDArray[np.int64]:
    labels = named.get(key)
    if not _are_labels(labels):
        raise InputError(f"{where}: has no list `{key}` of whole numbers 0 to 255, and a CIFAR batch has")
    return np.array(labels, np.int64)


def _are_labels(given: object) -> bool:
    return isinstance(given, list) and all(type(label) is int and 0 <= label < 256 for label in given)


def _images(planes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return planes (N, 3072) as images (N, 32, 32, 3)."""
    return planes.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)


def _size(file: BinaryIO) -> int:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return size


def _read_all(file: BinaryIO, where: str, limit: int) -> bytes:
    size = _size(file)
    if size > limit:
        raise InputError(f"{where}: holds {size} bytes, more than the {limit} allowed here")
    return file.read()
