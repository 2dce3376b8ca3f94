"""Pickles as data: what pickle reads, we read; what runs code is refused and doesn't run."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.data.read.plain_pickle import MOST_STEPS, read_plain_pickle
from rkcnn.error import InputError

PLAIN = st.recursive(
    st.integers(-(2**31), 2**31 - 1) | st.text() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(PLAIN, st.integers(0, 5))
def test_plain_data_comes_out_as_pickle_reads_it(value: object, protocol: int) -> None:
    assert read_plain_pickle(pickle.dumps(value, protocol), "here") == value


@given(st.binary(min_size=1), st.integers(2, 5))
def test_bytes_come_out_whole(value: bytes, protocol: int) -> None:
    assert read_plain_pickle(pickle.dumps([value], protocol), "here") == [value]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_plain_arrays_come_out_as_they_went_in(protocol: int, order: Any, dtype: type) -> None:
    array: np.ndarray[Any, Any] = np.asarray(np.arange(12).reshape(3, 4), dtype, order=order)
    read = read_plain_pickle(pickle.dumps({"data": array}, protocol), "here")
    assert isinstance(read, dict)
    assert read["data"].dtype == dtype
    assert (read["data"] == array).all()


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("protocol", range(6))
def test_code_is_refused_and_never_runs(protocol: int, tmp_path: Path) -> None:
    poison = pickle.dumps({"data": Evil(tmp_path / "ran"), "labels": []}, protocol)
    with pytest.raises(InputError, match="nothing was run"):
        read_plain_pickle(poison, "here")
    assert not (tmp_path / "ran").exists()
    pickle.loads(poison)
    assert (tmp_path / "ran").exists()  # it would have


@pytest.mark.parametrize(
    "data",
    [
        b"cbuiltins\neval\n(V1+1\ntR.",
        b"cnumpy\nload\n(Vx\ntR.",
        b"cnumpy\ndtype\n(VO\ntR.",  # objects
        b"(i__builtin__\neval\n.",
        b"\x80\x02}b.",
        b"P1\n.",  # a persistent id
        b"K\x05K\x06R.",
        b"]",
        b"",
        b".",
        b"0",
        b"h\x09.",
        b"\x80\x05\x96" + (2**62).to_bytes(8, "little") + b"x.",  # a bytearray of 4 exabytes
        b"N" * (MOST_STEPS + 1) + b".",
        b"cnumpy.core.multiarray\n_reconstruct\n)R.",
    ],
)
def test_everything_else_is_our_own_error_or_nothing(data: bytes) -> None:
    try:
        assert read_plain_pickle(data, "here") is None  # an array never filled in
    except InputError as error:
        assert str(error).startswith("here: ")  # noqa: PT017 (either is right)


DOUBLED = b"\x80\x02)q\x00" + b"h\x00h\x00\x86q\x00" * 40  # t = (t, t), 40 times over: 2**40 leaves in 250 bytes


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02}" + DOUBLED[2:] + b"K\x01s.",  # as a key
        b"\x80\x02}(" + DOUBLED[2:] + b"K\x01u.",
        DOUBLED + b")R.",  # as what is called
        b"\x80\x02cnumpy\ndtype\n" + DOUBLED[2:] + b"\x85R.",  # as a kind of number
    ],
)
def test_tuples_that_double_are_refused_at_once(data: bytes) -> None:
    with pytest.raises(InputError, match="tuple") as refused:
        read_plain_pickle(data, "here")
    assert len(str(refused.value)) < 200


def test_one_string_encoded_again_and_again_is_refused() -> None:
    once = b"c_codecs\nencode\nq\x00(V" + b"x" * 1000 + b"\nVlatin1\ntq\x01R"
    assert read_plain_pickle(once + b".", "here") == b"x" * 1000
    with pytest.raises(InputError, match="more than the file holds"):
        read_plain_pickle(once + b"h\x00h\x01R" * 100 + b".", "here")


def test_a_message_repeats_no_long_content() -> None:
    with pytest.raises(InputError) as refused:
        read_plain_pickle(b"S" + b"\xa3 " * 400 + b"\n.", "here")
    assert len(str(refused.value)) < 200
