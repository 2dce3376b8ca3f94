"""CIFAR's binary version: rows of a label (CIFAR-100: coarse, then fine) and 3 planes of 1,024 pixels."""

from __future__ import annotations

import io
from typing import BinaryIO

import numpy as np

from rkcnn.data.read.part import Part
from rkcnn.error import InputError

PIXELS = 3 * 32 * 32


def read_cifar_binary(file: BinaryIO, where: str, limit: int, label_bytes: int) -> Part:
    """The rows of one .bin file; with two label bytes the first is the coarse label."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    row = label_bytes + PIXELS
    if size == 0 or size % row:
        raise InputError(f"{where}: {size} bytes are not a whole number of rows of {row}; it is truncated or not CIFAR")
    if size > limit:
        raise InputError(f"{where}: holds {size} bytes, more than the {limit} allowed here")
    rows = np.frombuffer(file.read(), np.uint8).reshape(-1, row)
    labels = rows[:, :label_bytes]
    pixels = rows[:, label_bytes:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return Part(where, pixels, labels[:, -1], labels[:, 0] if label_bytes == 2 else None)
