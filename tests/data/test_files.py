"""Files in folders, packed or not, and in archives."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from rkcnn.data.files import files_in_archive, files_in_folder


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
