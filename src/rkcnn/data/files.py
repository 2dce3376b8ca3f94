"""Files by name, wherever they lie: in a folder, each perhaps as .gz, or inside one archive."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rkcnn.data.read.tar import read_tar
from rkcnn.data.sources import Sources
from rkcnn.error import InputError

if TYPE_CHECKING:  # they name their files by shelves
    from rkcnn.data.packaging import Layout
    from rkcnn.data.sets import DataSet


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


def fingerprint(data: DataSet, sources: Sources) -> str:
    """Of every file `find_files` finds: name, size and time; empty if there is none."""
    lines = []
    for layout, path in find_files(data, sources):
        shelf = None if path.is_file() else shelf_in(path, layout.files)
        for file in shelf.files.values() if shelf else [path]:
            if isinstance(file, Path) and file.exists():
                state = file.stat()
                lines.append(f"{file.resolve()} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest() if lines else ""


def find_files(data: DataSet, sources: Sources) -> Iterator[tuple[Layout, Path]]:
    """Every packed or unpacked copy already there: a layout, and the archive or folder that holds it."""
    seen = set()
    for folder in folders(data, sources):
        for layout in data.layouts:
            inner = (path for path in (folder / layout.folder, folder) if shelf_in(path, layout.files))
            archive = [folder / layout.archive] if layout.archive and (folder / layout.archive).is_file() else []
            for path in (*archive, *inner):
                if (path.resolve(), layout.files) not in seen:  # packagings of one set may share their names
                    seen.add((path.resolve(), layout.files))
                    yield layout, path


def folders(data: DataSet, sources: Sources) -> list[Path]:
    """Where files are looked for, in this order."""
    inside = [
        data.home,
        ".",
        "raw",
        "MNIST/raw" if data.home == "mnist" else "FashionMNIST/raw",
    ]  # torchvision's
    inside = inside[:2] if data.shape[2] == 3 else inside
    here = [place / name for place in sources.places() for name in inside]
    return here + [Path(place) for place in data.elsewhere]
