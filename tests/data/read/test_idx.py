"""IDX: the real digits, and every way a file can fail to be one."""

from __future__ import annotations

import gzip
import io
import struct
from importlib.resources import files

import numpy as np
import pytest

from rkcnn.data.read.idx import read_idx
from rkcnn.error import InputError

LIMIT = 100_000


def images(count: int = 3, height: int = 4, width: int = 5) -> bytes:
    values = bytes(range(count * height * width))
    return struct.pack(">4I", 0x803, count, height, width) + values


def labels(count: int = 3) -> bytes:
    return struct.pack(">2I", 0x801, count) + bytes(range(count))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_reads_plain_and_gzip(pack: type[bytes]) -> None:
    part = read_idx(io.BytesIO(pack(images())), io.BytesIO(pack(labels())), "here", LIMIT)
    assert part.pixels.tobytes() == bytes(range(60))
    assert part.pixels.shape == (3, 4, 5, 1)
    assert part.labels.tolist() == [0, 1, 2]


def test_reads_the_bundled_digits_as_numpy_does() -> None:
    folder = files("rkcnn.data") / "bundled"
    packed, named = ((folder / f"t10k-{kind}-ubyte.gz").read_bytes() for kind in ("images-idx3", "labels-idx1"))
    part = read_idx(io.BytesIO(packed), io.BytesIO(named), "here", 10_000_000)
    raw = np.frombuffer(gzip.decompress(packed), np.uint8, offset=16).reshape(2000, 28, 28, 1)
    assert (part.pixels == raw).all()
    assert part.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]


@pytest.mark.parametrize(
    ("pixels", "numbers", "says"),
    [
        (images()[:-1], labels(), "claims 60 bytes"),
        (images() + b"x", labels(), "goes on after"),
        (b"\0\0\x09\x03" + images()[4:], labels(), "magic number is 00000903"),
        (labels(), labels(), "magic number is 00000801"),
        (images(), labels(2), "3 images but 2 labels"),
        (
            struct.pack(">4I", 0x803, 2**32 - 1, 2**32 - 1, 2**32 - 1),
            labels(),
            "more than the 100000 allowed",
        ),
        (struct.pack(">4I", 0x803, 0, 2**32 - 1, 2**32 - 1), labels(0), "which is none"),
        (struct.pack(">4I", 0x803, 90, 30, 30) + b"x", labels(), "truncated"),
        (b"", labels(), "truncated"),
        (gzip.compress(images())[:-9], labels(), "truncated"),
        (gzip.compress(images())[:-6] + b"aaaaaa", labels(), "damaged"),
    ],
)
def test_refuses(pixels: bytes, numbers: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_idx(io.BytesIO(pixels), io.BytesIO(numbers), "here", LIMIT)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_labels_are_not_read_if_their_number_differs_from_that_of_the_images(pack: type[bytes]) -> None:
    none_follow = io.BytesIO(pack(struct.pack(">2I", 0x801, 60_000)))  # reading on would say that it is truncated
    with pytest.raises(InputError, match="3 images but 60000 labels"):
        read_idx(io.BytesIO(images()), none_follow, "here", LIMIT)


def test_the_limit_is_that_of_images_and_labels_together() -> None:
    pixels = struct.pack(">4I", 0x803, 60_000, 1, 1) + bytes(60_000)
    numbers = struct.pack(">2I", 0x801, 60_000) + bytes(60_000)
    with pytest.raises(InputError, match="labels: 60000 values makes"):
        read_idx(io.BytesIO(pixels), io.BytesIO(numbers), "here", LIMIT)
