"""MAT-5, the format of SVHN: tagged elements, each possibly zlib-packed, of which X and y are wanted."""

from __future__ import annotations

import io
import math
import struct
from typing import Any, BinaryIO

import numpy as np

from rkcnn.data.read.part import Part
from rkcnn.data.read.stream import Stream
from rkcnn.error import InputError

_MATRIX, _COMPRESSED = 14, 15
_NUMERIC = range(6, 16)  # classes double to uint64
_SHORT = 256  # bytes; a name has up to 63, dimensions 4 each
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}


def read_mat5(file: BinaryIO, where: str, limit: int) -> Part:
    """The pictures X (H, W, C, N) and labels y of a .mat file, where SVHN's label 10 is the digit 0."""
    text = Stream(file, where, limit).take(128, "the header")
    order = {b"IM": "<", b"MI": ">"}.get(bytes(text[126:128]))
    if order is None or not text.startswith(b"MATLAB 5.0"):
        raise InputError(f"{where}: doesn't begin as a MAT-5 file does; v7.3 files are HDF5, save them again")
    size = file.seek(0, io.SEEK_END)
    variables: dict[str, np.ndarray[Any, Any]] = {}
    at = 128
    while at < size:
        file.seek(at)
        stream = Stream(file, where, limit)
        kind, length = struct.unpack(f"{order}2I", stream.take(8, "an element's tag"))
        if length > stream.bound:
            raise InputError(f"{where}: an element claims {length} bytes, {stream.bound} follow; it is truncated")
        at += 8 + length
        if kind == _COMPRESSED:
            stream = Stream(file, where, limit, zlib_packed=True)
            kind = struct.unpack(f"{order}2I", stream.take(8, "a matrix's tag"))[0]
        if kind != _MATRIX:
            raise InputError(f"{where}: holds an element of type {kind}, and SVHN's files hold matrices alone")
        name, value = _matrix(stream, order)
        if name in variables:
            raise InputError(f"{where}: holds two variables called {name}")
        variables[name] = value
        limit -= stream.taken
    if "X" not in variables or "y" not in variables:
        raise InputError(f"{where}: holds {', '.join(sorted(variables)) or 'nothing'}, and SVHN's files hold X and y")
    pixels, labels = variables["X"], variables["y"].reshape(-1)
    if pixels.dtype != np.uint8 or pixels.ndim != 4:
        raise InputError(f"{where}: X is {pixels.dtype} with {pixels.ndim} dimensions, and must be uint8 (H, W, C, N)")
    if labels.shape != pixels.shape[3:]:
        raise InputError(f"{where}: {pixels.shape[3]} images but {labels.size} labels; the two must match")
    if not ((labels >= 1) & (labels <= 10) & (labels == np.floor(labels))).all():
        raise InputError(f"{where}: labels must be whole numbers 1 to 10 (10 is the digit 0)")
    return Part(where, pixels.transpose(3, 0, 1, 2), labels.astype(np.uint8) % 10)


def _matrix(stream: Stream, order: str) -> tuple[str, np.ndarray[Any, Any]]:
    """The name and value of a real numeric matrix, column-major as it lies in the file."""
    flags = _element(stream, order, "array flags", _SHORT)
    if not flags.size or int(flags[0]) & 0xFF not in _NUMERIC:
        raise InputError(f"{stream.where}: holds text, a cell or a struct, and SVHN's files hold numbers alone")
    shape = _element(stream, order, "dimensions", _SHORT)
    name = _element(stream, order, "name", _SHORT).astype(np.uint8).tobytes().decode("latin-1")
    values = _element(stream, order, f"values of {name!r}", stream.limit)
    if not 1 <= shape.size <= 32 or (shape < 1).any() or math.prod(map(int, shape)) != values.size:
        raise InputError(f"{stream.where}: {name} has {values.size} values, which don't fill {shape.tolist()}")
    return name, values.reshape(tuple(map(int, shape)), order="F")


def _element(stream: Stream, order: str, what: str, most: int) -> np.ndarray[Any, Any]:
    tag = stream.take(8, f"the tag of {what}")
    kind, length = struct.unpack(f"{order}2I", tag)
    if kind >> 16:  # a small element: its length and up to 4 bytes of data are in the tag itself
        kind, length = kind & 0xFFFF, kind >> 16
        if length > 4:
            raise InputError(f"{stream.where}: {what} claims {length} bytes in a small element, which holds 4")
        data = tag[4 : 4 + length]
    else:
        if length > most:
            raise InputError(f"{stream.where}: {what} take {length} bytes, more than the {most} allowed")
        data = stream.take(length, what)
        stream.skip(min(-length % 8, stream.bound), "padding")
    if kind not in _NUMBERS:
        raise InputError(f"{stream.where}: {what} are of type {kind}, and must be numbers")
    dtype = np.dtype(order + _NUMBERS[kind])
    if len(data) % dtype.itemsize:
        raise InputError(f"{stream.where}: {what} take {length} bytes, not a multiple of {dtype.itemsize}")
    return np.frombuffer(data, dtype)
