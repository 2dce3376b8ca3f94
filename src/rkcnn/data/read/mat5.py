"""MAT-5, the format of SVHN: tagged elements, each possibly compressed by zlib, of which X and y are read."""

from __future__ import annotations

import io
import math
import struct
from typing import Any, BinaryIO

import numpy as np

from rkcnn.data.read.archive import BoundedReader
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.error import InputError

_MATRIX, _COMPRESSED = 14, 15
_NUMERIC = range(6, 16)  # classes double to uint64
_SHORT = 256  # bytes; a name has up to 63, dimensions 4 each
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}


def read_mat5(file: BinaryIO, where: str, limit: int) -> LabelledPixels:
    """Read the images X (H, W, C, N) and the labels y of a .mat file; label 10, SVHN's for the digit 0, becomes 0.

    `limit` is the most bytes that all variables together may take.
    """
    header = BoundedReader(file, where, limit).read(128, "the header")
    order = {b"IM": "<", b"MI": ">"}.get(bytes(header[126:128]))
    if order is None or not header.startswith(b"MATLAB 5.0"):
        raise InputError(f"{where}: doesn't begin as a MAT-5 file does; v7.3 files are HDF5, save them again")
    size = file.seek(0, io.SEEK_END)
    variables: dict[str, np.ndarray[Any, Any]] = {}
    at = 128
    while at < size:
        file.seek(at)
        reader = BoundedReader(file, where, limit)
        kind, length = struct.unpack(f"{order}2I", reader.read(8, "an element's tag"))
        if length > reader.bound:
            raise InputError(f"{where}: an element claims {length} bytes, {reader.bound} follow; it is truncated")
        at += 8 + length
        if kind == _COMPRESSED:
            reader = BoundedReader(file, where, limit, zlib_packed=True)
            kind = struct.unpack(f"{order}2I", reader.read(8, "a matrix's tag"))[0]
        if kind != _MATRIX:
            raise InputError(f"{where}: holds an element of type {kind}, and SVHN's files hold matrices alone")
        name, value = _read_matrix(reader, order)
        if name in variables:
            raise InputError(f"{where}: holds two variables called {name}")
        variables[name] = value
        limit -= reader.count
    if "X" not in variables or "y" not in variables:
        raise InputError(f"{where}: holds {', '.join(sorted(variables)) or 'nothing'}, and SVHN's files hold X and y")
    pixels, labels = variables["X"], variables["y"].reshape(-1)
    if pixels.dtype != np.uint8 or pixels.ndim != 4:
        raise InputError(f"{where}: X is {pixels.dtype} with {pixels.ndim} dimensions, and must be uint8 (H, W, C, N)")
    if labels.shape != pixels.shape[3:]:
        raise InputError(f"{where}: {pixels.shape[3]} images but {labels.size} labels; the two must match")
    if not ((labels >= 1) & (labels <= 10) & (labels == np.floor(labels))).all():
        raise InputError(f"{where}: labels must be whole numbers 1 to 10 (10 is the digit 0)")
    return LabelledPixels(where, pixels.transpose(3, 0, 1, 2), labels.astype(np.uint8) % 10)


def _read_matrix(reader: BoundedReader, order: str) -> tuple[str, np.ndarray[Any, Any]]:
    """Return the name and value of a real numeric matrix, column by column as it is in the file."""
    flags = _read_element(reader, order, "array flags", _SHORT)
    if not flags.size or int(flags[0]) & 0xFF not in _NUMERIC:
        raise InputError(f"{reader.where}: holds text, a cell or a struct, and SVHN's files hold numbers alone")
    shape = _read_element(reader, order, "dimensions", _SHORT)
    name = _read_element(reader, order, "name", _SHORT).astype(np.uint8).tobytes().decode("latin-1")
    values = _read_element(reader, order, f"values of {name!r}", reader.limit)
    if not 1 <= shape.size <= 32 or (shape < 1).any() or math.prod(map(int, shape)) != values.size:
        raise InputError(f"{reader.where}: {name} has {values.size} values, which don't fill {shape.tolist()}")
    return name, values.reshape(tuple(map(int, shape)), order="F")


def _read_element(reader: BoundedReader, order: str, what: str, most: int) -> np.ndarray[Any, Any]:
    """Return the numbers of one element; InputError if it takes more than `most` bytes."""
    tag = reader.read(8, f"the tag of {what}")
    kind, length = struct.unpack(f"{order}2I", tag)
    if kind >> 16:  # a small element: its length and up to 4 bytes of data are in the tag itself
        kind, length = kind & 0xFFFF, kind >> 16
        if length > 4:
            raise InputError(f"{reader.where}: {what} claims {length} bytes in a small element, which holds 4")
        data = tag[4 : 4 + length]
    else:
        if length > most:
            raise InputError(f"{reader.where}: {what} take {length} bytes, more than the {most} allowed")
        data = reader.read(length, what)
        reader.skip(min(-length % 8, reader.bound), "padding")
    if kind not in _NUMBERS:
        raise InputError(f"{reader.where}: {what} are of type {kind}, and must be numbers")
    dtype = np.dtype(order + _NUMBERS[kind])
    if len(data) % dtype.itemsize:
        raise InputError(f"{reader.where}: {what} take {length} bytes, not a multiple of {dtype.itemsize}")
    return np.frombuffer(data, dtype)
