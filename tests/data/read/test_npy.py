"""Damaged NPY files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rkcnn.data.read.npy import read_npy
from rkcnn.disk import MissingFile
from rkcnn.error import InputError


def write(folder: Path, header: bytes, values: bytes = b"") -> Path:
    path = folder / "a.npy"
    path.write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + values)
    return path


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_comes_back(tmp_path: Path, order: str) -> None:
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    np.save(tmp_path / "a.npy", np.asarray(values, order=order))  # type: ignore[call-overload]
    assert (read_npy(tmp_path / "a.npy") == values).all()


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"{'descr': '<i2', 'fortran_order': False, 'shape': (17592186044416,)}", "claims 35184372088832 bytes"),
        (b"{'descr': '<i2', 'fortran_order': False, 'shape': (9,)}", "claims 18 bytes of values and has 4"),
        (b"{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}", "claims 2 bytes of values and has 4"),
        (b"{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}", "holds <U1 of shape"),
        (b"{'descr': '<i3', 'fortran_order': False, 'shape': (1,)}", "is of '<i3', which NumPy doesn't know"),
        (b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "is of '<f4', and must be whole numbers"),
        (b"{'descr': '<i2', 'fortran_order': False, 'shape': (-2,)}", "for a shape"),
        (b"{'descr': '<i2', 'fortran_order': False, 'shape': [2]}", "for a shape"),
        (b"{'descr': '<i2', 'shape': (2,)}", "no readable header of an array"),
        (b"(" * 4000, "no readable header of an array"),
        (b"[" * 2000 + b"]" * 2000, "no readable header of an array"),
        (b"-" * 4000 + b"1", "no readable header of an array"),
        (b"not " * 1000 + b"1", "no readable header of an array"),
        (b" " * 5000, "doesn't begin as an array of NumPy does"),
        (b"", "no readable header of an array"),
    ],
)
def test_a_damaged_header_is_one_sentence(tmp_path: Path, header: bytes, says: str) -> None:
    with pytest.raises(InputError, match=r"^.*$") as raised:
        read_npy(write(tmp_path, header, b"\1\2\3\4"))
    assert says in str(raised.value)
    assert len(str(raised.value)) < 300


def test_a_cut_or_missing_file(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"")
    with pytest.raises(InputError, match="doesn't begin as an array"):
        read_npy(tmp_path / "a.npy")
    with pytest.raises(MissingFile):
        read_npy(tmp_path / "b.npy")
