"""Reads NPZ, arrays of NumPy in a zip: x_train, y_train and perhaps x_test, y_test and classes, or MedMNIST's names."""

from __future__ import annotations

import io
import math
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from rkcnn.data.options import NPZ_KEYS
from rkcnn.data.read.archive import CHUNK, DEFLATE_RATIO
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.data.read.npy import ArrayHeader, read_header
from rkcnn.error import InputError, shorten
from rkcnn.escape import is_unicode

_CONTENTS = 1 << 20  # bytes of the zip's table of contents, more than a few arrays need
_MOST_NAMES = 32 << 20  # bytes of the names of all classes, 4 for each character of the longest name
_UNPROVED = 16 << 20  # bytes of an array that may be kept before all of it was seen, whatever the file's size
MOST_LABELS = 1 << 16


# names of MedMNIST's files, by ours; where a file has no test images, its val_images are those
_MEDMNIST = {
    "x_train": ("train_images",),
    "y_train": ("train_labels",),
    "x_test": ("test_images", "val_images", "x_val"),
    "y_test": ("test_labels", "val_labels", "y_val"),
}


# by the first letter of our names, what an array must hold, and how floats become that
_WANTED = {
    "x": ("uint8", '; for fractions from 0 to 1 that is (255 * x).round().astype("uint8")'),
    "y": ("whole numbers", ", as y.astype(int) makes them or, of a column for each class, y.argmax(1)"),
    "c": ("text", ""),
}


Shapes = dict[str, tuple[int, ...]]  # of the pixels of "train" and, if there is one, "test"
Labels = dict[str, np.ndarray[Any, Any]]


class _Member(NamedTuple):
    """An array of the file that is to be read."""

    info: zipfile.ZipInfo
    header: ArrayHeader


def read_npz(
    file: BinaryIO,
    where: str,
    limit: int,
    keys: Mapping[str, str] | None = None,
    check_shapes: Callable[[Shapes], object] = len,
    check_labels: Callable[[Labels, tuple[str, ...]], object] = lambda labels, classes: None,
) -> tuple[dict[str, LabelledPixels], tuple[str, ...]]:
    """Return the images of "train" and, if the file has them, "test"; and the class names, numbers if it has none.

    `limit` is the most bytes that all arrays together may take. `keys` gives the file's own names for our names.

    A small file may unpack to a thousand times its bytes. So what can be refused is refused before that is kept in
    memory: by the headers of all arrays and `check_shapes`, then by the labels and `check_labels`, then by the pixels.
    """
    try:
        _refuse_long_contents(file, where)
        with zipfile.ZipFile(file) as archive:
            found = _read_headers(archive, where, limit, keys or {})
            parts = [name for name in ("train", "test") if f"x_{name}" in found]
            shapes = {name: _check_part(name, found, where) for name in parts}
            if len({shape[1:3] for shape in shapes.values()}) > 1:
                raise InputError(f"{where}: training and test images differ in shape, and must not")
            check_shapes(shapes)
            names = _read_classes(archive, found["classes"], where) if "classes" in found else None
            most = len(names or range(MOST_LABELS)) - 1
            labels = {name: _read_array(archive, f"y_{name}", found, where, most).reshape(-1) for name in parts}
            names = names or tuple(map(str, range(1 + max(int(each.max()) for each in labels.values()))))
            check_labels(labels, names)
            images = {name: _read_array(archive, f"x_{name}", found, where) for name in parts}
    except InputError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        struct.error,
        NotImplementedError,
        RuntimeError,
        ValueError,
        SyntaxError,
        TypeError,
        KeyError,
        OverflowError,
        AttributeError,
        RecursionError,
        SystemError,
    ) as error:
        # what zipfile raises on damaged, encrypted or exotic files, and NumPy on text beyond Unicode
        reason = f"{type(error).__name__}: {shorten(str(error), 100)}"
        raise InputError(f"{where}: can't be read as .npz ({reason})") from None
    return {
        name: LabelledPixels(f"{where}: {name}", pixels.reshape((*pixels.shape[:3], -1)), labels[name])
        for name, pixels in images.items()
    }, names


def _read_classes(archive: zipfile.ZipFile, member: _Member, where: str) -> tuple[str, ...]:
    header = member.header
    if header.dtype.kind != "U" or len(header.shape) != 1 or not 0 < header.shape[0] <= MOST_LABELS:
        raise InputError(f"{where}: classes must be a list of 1 to {MOST_LABELS} names")
    if header.size > _MOST_NAMES:
        raise InputError(f"{where}: classes takes {header.size} bytes, and {_MOST_NAMES} are the most; use short names")
    given = _read_array(archive, "classes", {"classes": member}, where)
    if not is_unicode("".join(given.tolist())):
        raise InputError(f"{where}: the name of a class has half of a surrogate pair, which is no character; rename it")
    names = tuple(map(str, given))
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(f"{where}: two classes are called {shorten(twice[0])}; give each class a name of its own")
    return names


def _list_few(names: list[str]) -> str:
    """Return the first names as text for a message."""
    short = [name if len(name) <= 40 else f"{name[:40]}..." for name in names[:8]]
    return ", ".join([*short, f"and {len(names) - 8} more"] if len(names) > 8 else short) or "nothing"


def _check_part(part: str, found: Mapping[str, _Member], where: str) -> tuple[int, ...]:
    """Return the shape of the pixels of a part; InputError if an array has a wrong dtype or shape, by the headers."""
    pixels, labels = found[f"x_{part}"].header, found[f"y_{part}"].header
    shape, where = pixels.shape, f"{where}: {part}"
    if pixels.dtype != np.uint8 or len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] not in (1, 3)):
        given = f"{pixels.dtype} {shape}"
        raise InputError(f"{where}: pixels are {given}, and must be uint8 (N, H, W), (N, H, W, 1) or (N, H, W, 3)")
    if 0 in shape:
        raise InputError(f"{where}: pixels have the shape {shape}, and no side may be 0")
    count = math.prod(labels.shape)
    if labels.dtype.kind not in "iu" or not count:
        raise InputError(f"{where}: labels must be whole numbers from 0 to {MOST_LABELS - 1}")
    if len(labels.shape) == 2 and labels.shape[1] > 1:
        raise InputError(
            f"{where}: has {labels.shape[1]} labels for an image, and each image must have one class; where they are "
            "0 and 1, one for each class, that is y.argmax(1)"
        )
    if count != shape[0]:
        raise InputError(f"{where}: {shape[0]} images but {count} labels; the two must match")
    return shape


def _read_headers(archive: zipfile.ZipFile, where: str, limit: int, keys: Mapping[str, str]) -> dict[str, _Member]:
    """Return the arrays by our names; InputError if they take too much memory, or images have no labels."""
    found: dict[str, _Member] = {}
    remaining = limit
    members = [member.filename.removesuffix(".npy") for member in archive.infolist()]
    ours = _match_names(members, keys, where)
    for member in archive.infolist():
        name = ours.get(member.filename.removesuffix(".npy"), "")
        if not name:
            continue
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{where}: {name} is packed in a way NumPy doesn't write; save it with np.savez again")
        with archive.open(member) as packed:
            header = read_header(packed, f"{where}: {name}", *_WANTED[name[0]])
        if header.size > remaining:
            raise InputError(
                f"{where}: {name} takes {header.size} bytes, and `max_bytes={limit}` leaves {remaining}; allow more"
            )
        if header.size > member.compress_size * DEFLATE_RATIO:
            raise InputError(
                f"{where}: {name} claims {header.size} bytes, more than its {member.compress_size} can hold"
            )
        remaining -= header.size
        found[name] = _Member(member, header)
    for part in ("train", "test"):
        had = {f"x_{part}", f"y_{part}"} & found.keys()
        if len(had) == 1 or (part == "train" and not had):
            raise InputError(
                f"{where}: holds {_list_few(members)}; it needs x_{part} and y_{part}, or names for them in `keys=...`"
            )
    return found


def _read_array(
    archive: zipfile.ZipFile, name: str, found: Mapping[str, _Member], where: str, most: int | None = None
) -> np.ndarray[Any, Any]:
    """Return an array; InputError if its values are fewer or more than its header says, or not from 0 to `most`.

    One that is far larger than its part of the file is unpacked twice, so that nothing of it is kept if it is refused.
    """
    info, header = found[name]
    if header.size > max(_UNPROVED, 3 * info.compress_size):
        for _ in _unpack(archive, name, found[name], where, most):
            pass
    data = bytearray()
    for chunk in _unpack(archive, name, found[name], where, most):
        data += chunk
    return np.frombuffer(data, header.dtype).reshape(header.shape, order="F" if header.fortran else "C")


def _unpack(archive: zipfile.ZipFile, name: str, member: _Member, where: str, most: int | None) -> Iterator[bytes]:
    size, dtype = member.header.size, member.header.dtype
    done = 0
    with archive.open(member.info) as packed:
        read_header(packed, f"{where}: {name}")
        while done <= size and (chunk := packed.read(CHUNK)):
            done += len(chunk)
            if most is not None:
                _check_labels(np.frombuffer(chunk, dtype, len(chunk) // dtype.itemsize), most, f"{where}: {name}")
            yield chunk
    if done != size:
        raise InputError(f"{where}: {name} claims {size} bytes, has {'more' if done > size else 'less'}")


def _check_labels(labels: np.ndarray[Any, Any], most: int, where: str) -> None:
    low, high = (labels.min(), labels.max()) if labels.size else (0, 0)
    if low < 0 or high > most:
        raise InputError(f"{where} has labels from {low} to {high}, and labels must be whole numbers from 0 to {most}")


def _match_names(members: list[str], keys: Mapping[str, str], where: str) -> dict[str, str]:
    """Return our name of each array that is to be read, by the file's name for it."""
    ours: dict[str, str] = {}
    for name in NPZ_KEYS:
        candidates = (keys[name],) if name in keys else (name, *_MEDMNIST.get(name, ()))
        found = next((each for each in candidates if each in members), None)
        if found is not None:
            ours[found] = name
        elif name in keys:
            raise InputError(f"{where}: has no array {keys[name]}; it holds {_list_few(members)}")
    return ours


def _refuse_long_contents(file: BinaryIO, where: str) -> None:
    """Raise InputError if the zip lists more members than a few arrays need.

    zipfile makes an object of 600 bytes from each 46 bytes of that list before it says how many there are.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - (1 << 16) - 22))
    tail = file.read()
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) < at + 22:
        raise InputError(f"{where}: has no table of contents at its end; it is truncated or no .npz")
    contents = struct.unpack_from("<I", tail, at + 12)[0]
    if contents > _CONTENTS or tail[max(0, at - 20) : at].startswith(b"PK\6\7"):  # the latter: a 64-bit table
        raise InputError(f"{where}: its table of contents is larger than that of a few arrays of up to 4 GB")
    file.seek(0)
