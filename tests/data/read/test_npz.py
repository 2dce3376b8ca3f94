"""NPZ of own images."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pytest

from rkcnn.data.read.npz import read_npz
from rkcnn.error import InputError

PIXELS = np.random.RandomState(0).randint(0, 256, (6, 8, 9, 3), np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def npz(compressed: bool = False, **arrays: Any) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def read(data: bytes, limit: int = 100_000) -> Any:
    return read_npz(io.BytesIO(data), "here", limit)


@pytest.mark.parametrize("compressed", [True, False])
def test_reads_both_parts_and_names(compressed: bool) -> None:
    names = np.array(["cat", "dog", "über"])
    data = npz(compressed, x_train=PIXELS, y_train=LABELS, x_test=PIXELS[:2], y_test=LABELS[:2], classes=names)
    parts, classes = read(data)
    assert classes == ("cat", "dog", "über")
    assert (parts["train"].pixels == PIXELS).all()
    assert parts["test"].labels.tolist() == [0, 1]


def test_reads_grey_pictures_in_any_order_of_memory_without_names() -> None:
    parts, classes = read(npz(x_train=np.asfortranarray(PIXELS[..., 0]), y_train=LABELS.astype(np.uint8)))
    assert (parts["train"].pixels[..., 0] == PIXELS[..., 0]).all()
    assert classes == ("0", "1", "2")
    assert "test" not in parts


def claiming(shape: str) -> bytes:
    """A file whose x_train says it has that shape, and has nothing."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x_train.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    return file.getvalue()


def crowded() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(20_000):
            archive.writestr(f"{number:09}", b"")
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no table of contents"),
        (b"PK\5\6" + bytes(18), "holds ; it needs x_train"),
        (npz(x_train=PIXELS, y_train=LABELS)[:-30], "no table of contents"),
        (npz(x_train=PIXELS), "needs x_train and y_train"),
        (npz(x_train=PIXELS, y_train=LABELS, x_test=PIXELS), "needs x_test and y_test"),
        (npz(x_train=PIXELS.astype(float), y_train=LABELS), "whole numbers"),
        (npz(x_train=PIXELS.astype(np.int64), y_train=LABELS), "must be uint8"),
        (npz(x_train=PIXELS.transpose(0, 3, 1, 2), y_train=LABELS), "must be uint8"),
        (npz(x_train=PIXELS, y_train=LABELS[:5]), "6 images but 5 labels"),
        (npz(x_train=PIXELS, y_train=LABELS - 1), "from 0 to 65535"),
        (npz(x_train=np.array([object()]), y_train=LABELS), "whole numbers"),
        (npz(x_train=PIXELS, y_train=LABELS, classes=np.array([1, 2])), "names"),
        (npz(x_train=np.zeros((99, 32, 32, 3), np.uint8), y_train=LABELS), "--max-bytes allows"),
        (claiming("(99999999999999, 32, 32, 3)"), "--max-bytes allows"),
        (claiming("(9, 32, 32, 3)"), "has less"),
        (claiming("(-9, 32)"), "which is none"),
        (claiming("(1,"), "can't be read as .npz"),
        (crowded(), "table of contents is larger"),
    ],
)
def test_refuses(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(data)
