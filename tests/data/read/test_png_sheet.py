"""PNG sheets with JSON labels."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rkcnn.data.read.png_sheet import MOST_JSON, read_json_labels, read_png_sheet
from rkcnn.error import InputError

ROWS = np.random.RandomState(0).randint(0, 256, (4, 1024, 3), np.uint8)


def sheet(rows: Any = ROWS, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(rows).save(file, kind)
    return file.getvalue()


def read(data: bytes, labels: int = 4, limit: int = 50_000) -> Any:
    return read_png_sheet(io.BytesIO(data), np.arange(labels), "here", limit)


def test_reads_a_picture_a_row() -> None:
    part = read(sheet())
    assert (part.pixels == ROWS.reshape(4, 32, 32, 3)).all()


@pytest.mark.parametrize(
    ("data", "labels", "says"),
    [
        (sheet()[:5000], 4, "can't be read as PNG"),
        (b"not a picture", 4, "can't be read as PNG"),
        (sheet(kind="BMP"), 4, "can't be read as PNG"),
        (sheet(ROWS[:, :1000]), 4, "1000 pixels wide"),
        (sheet(ROWS[..., 0]), 4, "is L"),
        (sheet(), 3, "4 images but 3 labels"),
        (sheet(np.zeros((40, 1024, 3), np.uint8)), 40, "16666 are read at most"),
    ],
)
def test_refuses(data: bytes, labels: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(data, labels)


def test_reads_labels() -> None:
    assert read_json_labels(io.BytesIO(b"[6,9,0]"), "here").tolist() == [6, 9, 0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[1,",
        b"{}",
        b'["1"]',
        b"[1.5]",
        b"[256]",
        b"[-1]",
        b"[true]",
        b"[" * 100_000,
        b" " * (MOST_JSON + 1),
    ],
)
def test_refuses_labels(data: bytes) -> None:
    with pytest.raises(InputError, match="here: "):
        read_json_labels(io.BytesIO(data), "here")
