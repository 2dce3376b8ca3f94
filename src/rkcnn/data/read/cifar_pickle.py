"""CIFAR's python version: a pickled dict of `data` (N, 3072) and `labels`, or fine_ and coarse_labels."""

from __future__ import annotations

import io
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.read.cifar_binary import PIXELS
from rkcnn.data.read.part import Part
from rkcnn.data.read.plain_pickle import read_plain_pickle
from rkcnn.error import InputError


def read_cifar_pickle(file: BinaryIO, where: str, limit: int) -> Part:
    """The pictures and labels of one batch file."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    if size > limit:
        raise InputError(f"{where}: holds {size} bytes, more than the {limit} allowed here")
    content = read_plain_pickle(file.read(), where)
    if not isinstance(content, dict):
        raise InputError(f"{where}: holds a {type(content).__name__}, and a CIFAR batch is a dict")
    named = {key.decode("latin-1") if isinstance(key, bytes) else key: value for key, value in content.items()}
    data = named.get("data")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != PIXELS:
        raise InputError(f"{where}: has no `data` of uint8 (N, {PIXELS}), and a CIFAR batch has")
    pixels = data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    if "fine_labels" in named:
        return Part(where, pixels, _labels(named, "fine_labels", where), _labels(named, "coarse_labels", where))
    return Part(where, pixels, _labels(named, "labels", where))


def _labels(named: dict[object, object], key: str, where: str) -> NDArray[np.int64]:
    given = named.get(key)
    if not isinstance(given, list) or not all(type(label) is int and 0 <= label < 256 for label in given):
        raise InputError(f"{where}: has no list `{key}` of whole numbers 0 to 255, and a CIFAR batch has")
    return np.array(given, np.int64)
