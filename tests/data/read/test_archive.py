"""Reading within bounds, and members of archives as tarfile writes them."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.data.read.archive import BoundedReader, read_tar
from rkcnn.error import InputError


@given(
    st.binary(max_size=3000).filter(lambda data: data[:2] != b"\x1f\x8b"),
    st.sampled_from([bytes, gzip.compress, zlib.compress]),
    st.integers(1, 700),
)
def test_what_went_in_comes_out(data: bytes, pack: type[bytes], step: int) -> None:
    reader = BoundedReader(io.BytesIO(pack(data)), "here", 3000, zlib_packed=pack is zlib.compress)
    out = b"".join(reader.read(min(step, len(data) - at), "data") for at in range(0, len(data), step))
    reader.expect_end()
    assert out == data


def test_a_claim_is_refused_before_memory_is_given() -> None:
    for data, limit, says in (
        (b"abc", 10**12, "no more than 3 can follow"),
        (gzip.compress(b"abc"), 10**12, "can follow"),
        (bytes(2000), 1000, "more than the 1000 allowed"),
    ):
        tracemalloc.start()
        with pytest.raises(InputError, match=says):
            BoundedReader(io.BytesIO(data), "here", limit).read(10**9, "things")
        assert (
            tracemalloc.get_traced_memory()[1] < 1_000_000
        )  # of a thousand million claimed; other threads of this process count too
        tracemalloc.stop()


def test_a_bomb_is_skipped_in_little_memory() -> None:
    bomb = gzip.compress(bytes(50_000_000), 9)
    tracemalloc.start()
    reader = BoundedReader(io.BytesIO(bomb), "here", 10**9)
    reader.skip(50_000_000, "zeros")
    reader.expect_end()
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()


def test_damage_is_told_from_truncation() -> None:
    packed = gzip.compress(b"some text, and more of it" * 10)
    with pytest.raises(InputError, match="truncated"):
        BoundedReader(io.BytesIO(packed[:-12]), "here", 1000).read(250, "text")
    wrong = packed[:-8] + b"\0\0\0\0" + packed[-4:]
    with pytest.raises(InputError, match="damaged"):
        BoundedReader(io.BytesIO(wrong), "here", 1000).read(250, "text")


FILES = {"a/one.bin": bytes(range(256)) * 5, "a/two": b"", "b/three": b"x" * 512}


def tar(mode: str = "w:gz", kind: int = tarfile.PAX_FORMAT, extra: dict[str, bytes] | None = None) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode, format=kind) as archive:  # type: ignore[call-overload]
        for name, data in (FILES | (extra or {})).items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_reads_the_members_wanted(kind: int, mode: str) -> None:
    data = tar(mode, kind, {"n" * 120 + "/" + "m" * 60: b"long"})
    for wanted in (list(FILES), ["b/three"]):
        assert read_tar(io.BytesIO(data), wanted, "here", 100_000) == {name: FILES[name] for name in wanted}


def test_outside_means_outside_only() -> None:
    assert read_tar(io.BytesIO(tar(extra={"a/../a/fine": b""})), ["a/two"], "here", 100_000) == {"a/two": b""}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "truncated"),
        (b"no archive" * 100, "not a tar archive"),
        (tar()[:-20], "truncated"),
        (tar("w")[:1500], "truncated"),
        (tar(extra={"../evil": b"x"}), "points outside"),
        (tar(extra={"a/../../evil": b"x"}), "points outside"),
        (tar(extra={"/evil": b"x"}), "points outside"),
        (tar(extra={"big": bytes(200_000)}), "more than the 100000 allowed"),
    ],
)
def test_refuses_archives(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_tar(io.BytesIO(data), ["a/two"], "here", 100_000)


def test_refuses_an_archive_without_the_member() -> None:
    with pytest.raises(InputError, match="has no member c"):
        read_tar(io.BytesIO(tar()), ["a/two", "c"], "here", 100_000)
