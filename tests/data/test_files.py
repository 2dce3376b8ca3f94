"""Files in folders, packed or not, and in archives."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from rkcnn.data.files import files_in_archive, files_in_folder
from rkcnn.error import InputError


def test_a_folder_must_hold_every_file_plain_or_packed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    assert files_in_folder(tmp_path, ["a", "b"]) is None
    (tmp_path / "b.gz").write_bytes(b"two")
    files = files_in_folder(tmp_path, ["a", "b"])
    assert files is not None
    with files.open("a") as plain, files.open("b") as packed:
        assert (plain.read(), packed.read()) == (b"one", b"two")
    assert files.describe("b").endswith("b.gz")
    assert files.md5("a") == hashlib.md5(b"one").hexdigest()


def test_an_archive_is_read_by_the_names_inside_its_folder(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        member = tarfile.TarInfo("inside/a")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"one"))
    files = files_in_archive(tmp_path / "x.tar", "inside", ["a"], 100_000)
    assert files.open("a").read() == b"one"
    assert files.describe("a").endswith("x.tar: a")


def test_a_file_larger_than_any_published_one_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "test_32x32.mat").open("wb") as file:
        file.truncate(8 << 30)  # sparse: it takes no room, and half a minute to read
    found = files_in_folder(tmp_path, ["test_32x32.mat"])
    assert found is not None
    with pytest.raises(InputError, match=r"has 8,589,934,592 bytes; those of SVHN have fewer"):
        found.md5("test_32x32.mat")
