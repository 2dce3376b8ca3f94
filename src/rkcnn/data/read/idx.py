"""IDX, the format of MNIST and Fashion-MNIST: a magic number, the dimensions, the bytes; plain or gzip."""

from __future__ import annotations

import math
import struct
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.read.archive import BoundedReader
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.error import InputError


def read_idx(images: BinaryIO, labels: BinaryIO, where: str, limit: int) -> LabelledPixels:
    """Read the images of an IDX3 file and the labels of an IDX1 file, at most `limit` bytes of both together.

    Labels are only decompressed if there are as many as images.
    """
    reader = BoundedReader(images, f"{where} images", limit)
    shape = _read_shape(reader, dimensions=3)
    pixels = _read_values(reader, shape)
    reader = BoundedReader(labels, f"{where} labels", limit - pixels.nbytes)
    (count,) = _read_shape(reader, dimensions=1)
    if count != shape[0]:
        raise InputError(f"{where}: {shape[0]} images but {count} labels; the two must match")
    return LabelledPixels(where, pixels[..., None], _read_values(reader, (count,)))


def _read_shape(reader: BoundedReader, dimensions: int) -> tuple[int, ...]:
    magic = bytes(reader.read(4, "the magic number"))
    expected = bytes([0, 0, 8, dimensions])  # 8: unsigned bytes
    if magic != expected:
        raise InputError(f"{reader.where}: magic number is {magic.hex()}, and IDX of this kind has {expected.hex()}")
    shape = struct.unpack(f">{dimensions}I", reader.read(4 * dimensions, "the dimensions"))
    if 0 in shape:
        raise InputError(f"{reader.where}: claims {' x '.join(map(str, shape))} values, which is none")
    return shape


def _read_values(reader: BoundedReader, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    data = reader.read(math.prod(shape), f"{' x '.join(map(str, shape))} values")
    reader.expect_end()
    return np.frombuffer(data, np.uint8).reshape(shape)
