"""Files by name, wherever they lie: in a folder, each perhaps as .gz, or inside one archive."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rkcnn.data.read.tar import read_tar
from rkcnn.error import InputError


@dataclass(frozen=True)
class Shelf:
    """Some files of a data set; `where` names them to a person."""

    where: str
    files: dict[str, Path | bytearray]

    def open(self, name: str) -> BinaryIO:
        """The file, at its beginning; plain or gzip, which readers tell by its first bytes."""
        file = self.files[name]
        return open_file(file) if isinstance(file, Path) else io.BytesIO(file)

    def label(self, name: str) -> str:
        """The file's full name, for messages."""
        file = self.files[name]
        return str(file) if isinstance(file, Path) else f"{self.where}: {name}"

    def md5(self, name: str) -> str:
        """Of the file as published: all that is known of SVHN's."""
        digest = hashlib.md5(usedforsecurity=False)
        with self.open(name) as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return digest.hexdigest()


def open_file(path: Path) -> BinaryIO:
    """The file, or a sentence that says why not."""
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror})") from None


def shelf_in(folder: Path, names: Collection[str]) -> Shelf | None:
    """The shelf of a folder that holds every name, plain or as .gz; None if one is missing."""
    files: dict[str, Path | bytearray] = {}
    for name in names:
        found = next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
        if found is None:
            return None
        files[name] = found
    return Shelf(str(folder), files)


def shelf_of_archive(archive: Path, folder: str, names: Collection[str], limit: int) -> Shelf:
    """The shelf of an archive's members, read into memory: at most `limit` bytes."""
    with open_file(archive) as file:
        members = read_tar(file, [f"{folder}/{name}" for name in names], str(archive), limit)
    return Shelf(str(archive), {name: members[f"{folder}/{name}"] for name in names})
