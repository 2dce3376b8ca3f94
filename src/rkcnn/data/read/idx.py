"""IDX, the format of MNIST and Fashion-MNIST: a magic number, the dimensions, the bytes; plain or gzip."""

from __future__ import annotations

import math
import struct
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.read.part import Part
from rkcnn.data.read.stream import Stream
from rkcnn.error import InputError


def read_idx(images: BinaryIO, labels: BinaryIO, where: str, limit: int) -> Part:
    """Read the images of an IDX3 file and the labels of an IDX1 file, at most `limit` bytes of both together.

    Labels are only decompressed if there are as many as images.
    """
    stream = Stream(images, f"{where} images", limit)
    shape = _read_shape(stream, dimensions=3)
    pixels = _read_values(stream, shape)
    stream = Stream(labels, f"{where} labels", limit - pixels.nbytes)
    (count,) = _read_shape(stream, dimensions=1)
    if count != shape[0]:
        raise InputError(f"{where}: {shape[0]} images but {count} labels; the two must match")
    return Part(where, pixels[..., None], _read_values(stream, (count,)))


def _read_shape(stream: Stream, dimensions: int) -> tuple[int, ...]:
    magic = bytes(stream.take(4, "the magic number"))
    expected = bytes([0, 0, 8, dimensions])  # 8: unsigned bytes
    if magic != expected:
        raise InputError(f"{stream.where}: magic number is {magic.hex()}, and IDX of this kind has {expected.hex()}")
    shape = struct.unpack(f">{dimensions}I", stream.take(4 * dimensions, "the dimensions"))
    if 0 in shape:
        raise InputError(f"{stream.where}: claims {' x '.join(map(str, shape))} values, which is none")
    return shape


def _read_values(stream: Stream, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    data = stream.take(math.prod(shape), f"{' x '.join(map(str, shape))} values")
    stream.end()
    return np.frombuffer(data, np.uint8).reshape(shape)
