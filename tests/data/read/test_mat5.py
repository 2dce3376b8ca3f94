"""MAT-5 against scipy, and files that aren't SVHN."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from rkcnn.data.read.mat5 import read_mat5
from rkcnn.error import InputError

X = np.random.RandomState(0).randint(0, 256, (32, 32, 3, 5), np.uint8)
Y = np.array([[1], [2], [10], [9], [5]])


def mat(compressed: bool = True, **variables: Any) -> bytes:
    file = io.BytesIO()
    savemat(file, variables, do_compression=compressed)
    return file.getvalue()


def read(data: bytes, limit: int = 100_000) -> Any:
    return read_mat5(io.BytesIO(data), "here", limit)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64])
def test_reads_what_scipy_reads(compressed: bool, dtype: type) -> None:
    data = mat(compressed, X=X, y=Y.astype(dtype))
    part = read(data)
    assert (part.pixels == loadmat(io.BytesIO(data))["X"].transpose(3, 0, 1, 2)).all()
    assert part.labels.tolist() == [1, 2, 0, 9, 5]


GOOD = mat(X=X, y=Y)
BOMB = zlib.compress(bytes(10_000_000), 9)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "claims 128 bytes"),
        (bytes(200), "doesn't begin"),
        (GOOD[:128], "holds nothing"),
        (GOOD[:-50], "truncated"),
        (GOOD[:9000], "truncated"),
        (GOOD[:300] + b"\xff" + GOOD[301:], "damaged|truncated|claims|takes? "),
        (mat(X=X), "holds X"),
        (mat(X=X, y=Y[:4]), "5 images but 4 labels"),
        (mat(X=X[..., :2].astype(float), y=Y), "must be uint8"),
        (mat(X=X[..., 0], y=Y), "must be uint8"),
        (mat(X=X, y=Y * 0), "1 to 10"),
        (mat(X=X, y=Y + 0.5), "1 to 10"),
        (mat(X=X, y=Y, z={"a": 1}), "a struct"),
        (mat(X=np.zeros((32, 32, 3, 50), np.uint8), y=np.ones((50, 1))), "more than the 100000 allowed"),
        (GOOD[:128] + b"\x0f\0\0\0" + len(BOMB).to_bytes(4, "little") + BOMB, "type 0"),
    ],
)
def test_refuses(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(data)
