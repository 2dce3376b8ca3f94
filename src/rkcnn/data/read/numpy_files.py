"""Files of NumPy: NPY, one array (NEP 1), and NPZ, arrays in a zip; a header is checked before anything is allocated.

An NPZ holds x_train, y_train and perhaps x_test, y_test and classes, or has MedMNIST's names.
"""

from __future__ import annotations

import ast
import io
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from rkcnn.data.options import NPZ_KEYS
from rkcnn.data.read.archive import CHUNK, DEFLATE_RATIO
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.disk import open_file
from rkcnn.error import InputError, shorten
from rkcnn.escape import is_unicode

_LONGEST_HEADER = 4096  # bytes, more than the description of any plain array takes
_MOST_BYTES = 1 << 30  # of the values of a file
_MOST_BRACKETS = 64  # in a header; a plain array has three


class ArrayHeader(NamedTuple):
    """The description of an array of whole numbers or text."""

    shape: tuple[int, ...]
    fortran: bool  # whether the first index varies fastest
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """How many bytes the array takes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path) -> np.ndarray[Any, Any]:
    """Return the whole numbers in an .npy file; raises InputError if it holds none or is not as long as it says."""
    with open_file(path) as file:
        header = read_header(file, str(path))
        left = os.fstat(file.fileno()).st_size - file.tell()
        if left > _MOST_BYTES:
            raise InputError(f"{path}: has {left} bytes of values, and {_MOST_BYTES} are the most")
        if header.size != left:
            raise InputError(f"{path}: claims {header.size} bytes of values and has {left}; it is cut off or damaged")
        values = np.frombuffer(file.read(header.size), header.dtype)
    if header.dtype.kind not in "iu" or len(values) != math.prod(header.shape):
        raise InputError(f"{path}: holds {header.dtype} of shape {header.shape}, and must hold whole numbers")
    return values.reshape(header.shape, order="F" if header.fortran else "C")


def read_header(file: IO[bytes], where: str, wanted: str = "whole numbers", of_floats: str = "") -> ArrayHeader:
    """Read the description at the start of an array in NumPy's format, which leaves `file` at its values.

    Raises InputError, which begins with `where`, if there is none, or if it is not of whole numbers or text. It says
    what is `wanted` and, if the values are floats, how to make that `of_floats`.
    """
    start = file.read(8)
    wide = start[6:7] in (b"\2", b"\3")
    length = int.from_bytes(file.read(4 if wide else 2), "little")
    if start[:6] != b"\x93NUMPY" or length > _LONGEST_HEADER:
        raise InputError(f"{where}: doesn't begin as an array of NumPy does")
    text = file.read(length).decode("latin-1").strip()
    try:
        if sum(map(text.count, "([{")) > _MOST_BRACKETS:
            raise ValueError("too many brackets")
        described = ast.literal_eval(text)
        shape, kind, fortran = (described[name] for name in ("shape", "descr", "fortran_order"))
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as error:
        # MemoryError and RecursionError are the parser's, for operators inside each other
        raise InputError(f"{where}: has no readable header of an array ({type(error).__name__})") from None
    if not isinstance(kind, str) or not re.fullmatch(r"[<>|=]?[iuU]\d{1,5}", kind):
        hint = of_floats if re.fullmatch(r"[<>|=]?f\d{1,5}", str(kind)) else ""
        raise InputError(f"{where}: is of {str(kind)[:80]!r}, and must be {wanted}{hint}")
    if not isinstance(shape, tuple) or not all(type(length) is int and length >= 0 for length in shape):
        raise InputError(f"{where}: has {str(shape)[:80]} for a shape, and must have a tuple of whole numbers")
    if len(shape) > 32 or any(length >= 1 << 63 for length in shape):
        raise InputError(f"{where}: has a shape of {len(shape)} lengths or of one beyond 2**63, which no array has")
    try:
        return ArrayHeader(shape, bool(fortran), np.dtype(kind))
    except TypeError:  # as for i3
        raise InputError(f"{where}: is of {kind!r}, which NumPy doesn't know") from None


_CONTENTS = 1 << 20  # bytes of the zip's table of contents, more than a few arrays need
_MOST_CLASSES = 1 << 16


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
    "y": ("whole numbers", ", as y.astype(int) makes them"),
    "c": ("text", ""),
}


def read_npz(
    file: BinaryIO, where: str, limit: int, keys: Mapping[str, str] | None = None
) -> tuple[dict[str, LabelledPixels], tuple[str, ...]]:
    """Return the images of "train" and, if the file has them, "test"; and the class names, numbers if it has none.

    `limit` is the most bytes that all arrays together may take. `keys` gives the file's own names for our names.
    """
    try:
        arrays, members = _read_arrays(file, where, limit, keys or {})
        names = tuple(map(str, _check_classes(arrays["classes"], where))) if "classes" in arrays else None
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
    parts = {}
    for name in ("train", "test"):
        pixels, labels = arrays.get(f"x_{name}"), arrays.get(f"y_{name}")
        if pixels is None or labels is None:
            if name == "test" and pixels is labels:
                continue
            raise InputError(
                f"{where}: holds {_list_few(members)}; it needs x_{name} and y_{name}, or names for them in `keys=...`"
            )
        parts[name] = _labelled(pixels, labels, f"{where}: {name}")
    return parts, names or tuple(map(str, range(1 + max(int(part.labels.max()) for part in parts.values()))))


def _check_classes(given: np.ndarray[Any, Any], where: str) -> np.ndarray[Any, Any]:
    if given.dtype.kind != "U" or given.ndim != 1 or not 0 < given.size <= _MOST_CLASSES:
        raise InputError(f"{where}: classes must be a list of 1 to {_MOST_CLASSES} names")
    if not is_unicode("".join(given.tolist())):
        raise InputError(f"{where}: the name of a class has half of a surrogate pair, which is no character; rename it")
    return given


def _list_few(names: list[str]) -> str:
    """Return the first names as text for a message."""
    short = [name if len(name) <= 40 else f"{name[:40]}..." for name in names[:8]]
    return ", ".join([*short, f"and {len(names) - 8} more"] if len(names) > 8 else short) or "nothing"


def _labelled(pixels: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], where: str) -> LabelledPixels:
    """Return pixels and labels as one value; InputError if an array has a wrong dtype or shape."""
    if pixels.dtype != np.uint8 or pixels.ndim not in (3, 4) or (pixels.ndim == 4 and pixels.shape[3] not in (1, 3)):
        given = f"{pixels.dtype} {pixels.shape}"
        raise InputError(f"{where}: pixels are {given}, and must be uint8 (N, H, W), (N, H, W, 1) or (N, H, W, 3)")
    if 0 in pixels.shape:
        raise InputError(f"{where}: pixels have the shape {pixels.shape}, and no side may be 0")
    if labels.dtype.kind not in "iu" or not labels.size or labels.min() < 0 or labels.max() > 65535:
        raise InputError(f"{where}: labels must be whole numbers from 0 to 65535")
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise InputError(f"{where}: has {labels.shape[1]} labels for an image, and each image must have one class")
    return LabelledPixels(where, pixels.reshape((*pixels.shape[:3], -1)), labels.reshape(-1))


def _read_arrays(
    file: BinaryIO, where: str, limit: int, keys: Mapping[str, str]
) -> tuple[dict[str, np.ndarray[Any, Any]], list[str]]:
    """Return the arrays by our names, and the names of everything that the file holds."""
    _refuse_long_contents(file, where)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    remaining = limit
    with zipfile.ZipFile(file) as archive:
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
                size = header.size
                if size > remaining:
                    raise InputError(
                        f"{where}: {name} takes {size} bytes, and `max_bytes={limit}` leaves {remaining}; allow more"
                    )
                if size > member.compress_size * DEFLATE_RATIO:
                    raise InputError(
                        f"{where}: {name} claims {size} bytes, more than its {member.compress_size} can hold"
                    )
                data = bytearray()
                while len(data) <= size and (chunk := packed.read(CHUNK)):
                    data += chunk
                if len(data) != size:
                    raise InputError(
                        f"{where}: {name} claims {size} bytes, has {'more' if len(data) > size else 'less'}"
                    )
            remaining -= size
            arrays[name] = np.frombuffer(data, header.dtype).reshape(header.shape, order="F" if header.fortran else "C")
    return arrays, members


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
