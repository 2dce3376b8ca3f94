"""Reads NPY, one array in a file of NumPy (NEP 1); its header is checked before anything is allocated."""

from __future__ import annotations

import ast
import math
import os
import re
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from rkcnn.disk import open_file
from rkcnn.error import InputError

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
