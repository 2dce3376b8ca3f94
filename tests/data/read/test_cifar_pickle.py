"""CIFAR's python batches, as Python 2 wrote them and as Python 3 would."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

import numpy as np
import pytest

from rkcnn.data.read.cifar_pickle import read_cifar_pickle
from rkcnn.error import InputError

DATA = np.random.RandomState(0).randint(0, 256, (3, 3072), np.uint8)


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


def read(data: bytes) -> Any:
    return read_cifar_pickle(io.BytesIO(data), "here", 1_000_000)


def test_reads_a_batch_as_python_2_wrote_it() -> None:
    data = python2([3, 1, 2])
    assert (pickle.loads(data, encoding="bytes")[b"data"] == DATA).all()  # the opcodes are right
    part = read(data)
    assert (part.pixels == DATA.reshape(3, 3, 32, 32).transpose(0, 2, 3, 1)).all()
    assert part.labels.tolist() == [3, 1, 2]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_reads_fine_and_coarse_labels(protocol: int) -> None:
    content = {"data": DATA, "fine_labels": [7, 8, 99], "coarse_labels": [0, 1, 19]}
    part = read(pickle.dumps(content, protocol))
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
def test_refuses(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(data)
