"""CIFAR's binary rows, its python batches as Python 2 wrote them and as Python 3 would, its PNG sheets."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rkcnn.data.read.cifar import (
    MOST_JSON,
    read_cifar_binary,
    read_cifar_pickle,
    read_json_labels,
    read_png_sheet,
)
from rkcnn.error import InputError

DATA = np.random.RandomState(0).randint(0, 256, (3, 3072), np.uint8)
ROWS = np.random.RandomState(0).randint(0, 256, (4, 1024, 3), np.uint8)


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
def test_refuses_binary_files(size: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_cifar_binary(io.BytesIO(bytes(size)), "here", 20_000, 1)


def python2(labels: list[int]) -> bytes:
    """{'data': array, 'labels': list, 'filenames': list} in the opcodes of the published files."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN" + b"J\xff\xff\xff\xff" * 2 + b"K\x00tb"
    state = b"(K\x01K\x03M\x00\x0c\x86" + dtype
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    array += state + b"\x89T" + struct.pack("<i", DATA.size) + DATA.tobytes() + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    names = b"](" + text(b"a.png") + b"q\x05" + text(b"b.png") + b"h\x05e"
    return b"\x80\x02}q\x01(" + text(b"data") + array + text(b"labels") + numbers + text(b"filenames") + names + b"u."


def batch(**content: Any) -> bytes:
    return pickle.dumps({key.encode(): value for key, value in content.items()}, 2)


def read_pickle(data: bytes) -> Any:
    return read_cifar_pickle(io.BytesIO(data), "here", 1_000_000)


def test_reads_a_batch_as_python_2_wrote_it() -> None:
    data = python2([3, 1, 2])
    assert (pickle.loads(data, encoding="bytes")[b"data"] == DATA).all()  # the opcodes are right
    part = read_pickle(data)
    assert (part.pixels == DATA.reshape(3, 3, 32, 32).transpose(0, 2, 3, 1)).all()
    assert part.labels.tolist() == [3, 1, 2]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_reads_fine_and_coarse_labels(protocol: int) -> None:
    content = {"data": DATA, "fine_labels": [7, 8, 99], "coarse_labels": [0, 1, 19]}
    part = read_pickle(pickle.dumps(content, protocol))
    assert part.labels.tolist() == [7, 8, 99]
    assert part.coarse.tolist() == [0, 1, 19]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (pickle.dumps([1, 2]), "holds a list"),
        (batch(labels=[1, 2, 3]), "no `data`"),
        (batch(data=DATA.astype(np.int64), labels=[1, 2, 3]), "no `data` of uint8"),
        (batch(data=DATA[:, :100], labels=[1, 2, 3]), "no `data` of uint8"),
        (batch(data=DATA), "no list `labels`"),
        (batch(data=DATA, labels=[1, 2]), "3 images but 2 labels"),
        (batch(data=DATA, labels=[1, 2, 256]), "0 to 255"),
        (batch(data=DATA, labels=[1, 2, "x"]), "0 to 255"),
        (batch(data=DATA, fine_labels=[1, 2, 3]), "no list `coarse_labels`"),
        (batch(data=DATA, labels=[1, 2, 3])[:-200], "not a readable pickle|no end"),
        (bytes(1_000_001), "more than the 1000000 allowed"),
    ],
)
def test_refuses_pickles(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_pickle(data)


def sheet(rows: Any = ROWS, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(rows).save(file, kind)
    return file.getvalue()


def read_sheet(data: bytes, labels: int = 4, limit: int = 50_000) -> Any:
    return read_png_sheet(io.BytesIO(data), np.arange(labels), "here", limit)


def test_reads_an_image_from_each_row() -> None:
    part = read_sheet(sheet())
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
def test_refuses_sheets(data: bytes, labels: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_sheet(data, labels)


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
