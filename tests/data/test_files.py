"""Files in folders, packed or not, and in archives."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from rkcnn.data.files import open_file, shelf_in, shelf_of_archive
from rkcnn.error import InputError


def test_a_folder_must_hold_every_file_plain_or_packed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    assert shelf_in(tmp_path, ["a", "b"]) is None
    (tmp_path / "b.gz").write_bytes(b"two")
    shelf = shelf_in(tmp_path, ["a", "b"])
    assert shelf is not None
    with shelf.open("a") as plain, shelf.open("b") as packed:
        assert (plain.read(), packed.read()) == (b"one", b"two")
    assert shelf.label("b").endswith("b.gz")
    assert shelf.md5("a") == hashlib.md5(b"one").hexdigest()


def test_an_archive_is_read_by_the_names_inside_its_folder(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        member = tarfile.TarInfo("inside/a")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"one"))
    shelf = shelf_of_archive(tmp_path / "x.tar", "inside", ["a"], 100_000)
    assert shelf.open("a").read() == b"one"
    assert shelf.label("a").endswith("x.tar: a")


def test_what_cannot_be_opened_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        open_file(tmp_path)
