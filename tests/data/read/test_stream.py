"""Bounded reading."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.data.read.stream import Stream
from rkcnn.error import InputError


@given(
    st.binary(max_size=3000).filter(lambda data: data[:2] != b"\x1f\x8b"),
    st.sampled_from([bytes, gzip.compress, zlib.compress]),
    st.integers(1, 700),
)
def test_what_went_in_comes_out(data: bytes, pack: type[bytes], step: int) -> None:
    stream = Stream(io.BytesIO(pack(data)), "here", 3000, zlib_packed=pack is zlib.compress)
    out = b"".join(stream.take(min(step, len(data) - at), "data") for at in range(0, len(data), step))
    stream.end()
    assert out == data


def test_a_claim_is_refused_before_memory_is_given() -> None:
    for data, limit, says in (
        (b"abc", 10**12, "no more than 3 can follow"),
        (gzip.compress(b"abc"), 10**12, "can follow"),
        (bytes(2000), 1000, "more than the 1000 allowed"),
    ):
        tracemalloc.start()
        with pytest.raises(InputError, match=says):
            Stream(io.BytesIO(data), "here", limit).take(10**9, "things")
        assert (
            tracemalloc.get_traced_memory()[1] < 1_000_000
        )  # of a thousand million claimed; other threads of this process count too
        tracemalloc.stop()


def test_a_bomb_is_skipped_in_little_memory() -> None:
    bomb = gzip.compress(bytes(50_000_000), 9)
    tracemalloc.start()
    stream = Stream(io.BytesIO(bomb), "here", 10**9)
    stream.skip(50_000_000, "zeros")
    stream.end()
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()


def test_damage_is_told_from_truncation() -> None:
    packed = gzip.compress(b"some text, and more of it" * 10)
    with pytest.raises(InputError, match="truncated"):
        Stream(io.BytesIO(packed[:-12]), "here", 1000).take(250, "text")
    wrong = packed[:-8] + b"\0\0\0\0" + packed[-4:]
    with pytest.raises(InputError, match="damaged"):
        Stream(io.BytesIO(wrong), "here", 1000).take(250, "text")
