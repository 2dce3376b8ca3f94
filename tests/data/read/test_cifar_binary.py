"""CIFAR's binary rows."""

from __future__ import annotations

import io

import numpy as np
import pytest

from rkcnn.data.read.cifar_binary import read_cifar_binary
from rkcnn.error import InputError


@pytest.mark.parametrize("label_bytes", [1, 2])
def test_reads_rows_of_labels_and_planes(label_bytes: int) -> None:
    rows = np.random.RandomState(0).randint(0, 256, (4, label_bytes + 3072), np.uint8)
    part = read_cifar_binary(io.BytesIO(rows.tobytes()), "here", 20_000, label_bytes)
    assert part.labels.tolist() == rows[:, label_bytes - 1].tolist()
    assert (part.coarse is None) == (label_bytes == 1)
    if part.coarse is not None:
        assert part.coarse.tolist() == rows[:, 0].tolist()
    # row, column, channel of a plane-by-plane file
    assert part.pixels[2, 5, 7, 1] == rows[2, label_bytes + 1024 + 5 * 32 + 7]


@pytest.mark.parametrize(("size", "says"), [(0, "whole number of rows"), (3072, "whole number"), (30730, "allowed")])
def test_refuses(size: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_cifar_binary(io.BytesIO(bytes(size)), "here", 20_000, 1)
