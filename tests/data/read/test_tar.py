"""Members of archives as tarfile writes them."""

from __future__ import annotations

import io
import tarfile

import pytest

from rkcnn.data.read.tar import read_tar
from rkcnn.error import InputError

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
        (b"no archive" * 100, "no tar archive"),
        (tar()[:-20], "truncated"),
        (tar("w")[:1500], "truncated"),
        (tar(extra={"../evil": b"x"}), "points outside"),
        (tar(extra={"a/../../evil": b"x"}), "points outside"),
        (tar(extra={"/evil": b"x"}), "points outside"),
        (tar(extra={"big": bytes(200_000)}), "more than the 100000 allowed"),
    ],
)
def test_refuses(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_tar(io.BytesIO(data), ["a/two"], "here", 100_000)


def test_refuses_an_archive_without_the_member() -> None:
    with pytest.raises(InputError, match="has no member c"):
        read_tar(io.BytesIO(tar()), ["a/two", "c"], "here", 100_000)
