"""The published files of a data set, found on this machine: in a folder, each perhaps as .gz, or in one archive."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rkcnn.data.options import Sources
from rkcnn.data.packaging import PACKAGINGS, Packaging
from rkcnn.data.read.archive import read_tar
from rkcnn.data.sets import DataSet
from rkcnn.disk import open_file
from rkcnn.error import InputError

LARGEST_PUBLISHED = 1_400_000_000  # bytes; SVHN's extra_32x32.mat has 1,329,278,602


@dataclass(frozen=True)
class SetFiles:
    """Files of a data set by name, each a path or already in memory; `where` names them in messages."""

    where: str
    files: dict[str, Path | bytearray]

    def open(self, name: str) -> BinaryIO:
        """Open a file at its beginning; it may be plain or gzip, which the decoders tell by its first bytes."""
        file = self.files[name]
        return open_file(file) if isinstance(file, Path) else io.BytesIO(file)

    def describe(self, name: str) -> str:
        """Return the full name of a file, for messages."""
        file = self.files[name]
        return str(file) if isinstance(file, Path) else f"{self.where}: {name}"

    def md5(self, name: str) -> str:
        """Return the md5 of a file as it was published, which is all that is known of SVHN's files.

        Raises InputError for a file that is larger than any of them: reading it would take long, for nothing.
        """
        digest = hashlib.md5(usedforsecurity=False)
        with self.open(name) as file:
            size = file.seek(0, io.SEEK_END)
            if size > LARGEST_PUBLISHED:
                raise InputError(
                    f"{self.describe(name)} has {size:,} bytes; those of SVHN have fewer, so it is another"
                )
            file.seek(0)
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return digest.hexdigest()


def files_in_folder(folder: Path, names: Collection[str]) -> SetFiles | None:
    """Return the files of those names, plain or as .gz; None if the folder lacks one of them."""
    files: dict[str, Path | bytearray] = {}
    for name in names:
        found = next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
        if found is None:
            return None
        files[name] = found
    return SetFiles(str(folder), files)


def files_in_archive(archive: Path, folder: str, names: Collection[str], limit: int) -> SetFiles:
    """Return members of a tar archive, read into memory; InputError if that takes more than `limit` bytes."""
    with open_file(archive) as file:
        members = read_tar(file, [f"{folder}/{name}" for name in names], str(archive), limit)
    return SetFiles(str(archive), {name: members[f"{folder}/{name}"] for name in names})


def find_copies(data: DataSet, sources: Sources) -> Iterator[tuple[Packaging, Path]]:
    """Yield every copy of the set on this machine: its packaging, and the archive or folder that holds it."""
    seen = set()
    for folder in search_folders(data, sources):
        for packaging in PACKAGINGS[data.name]:
            unpacked = (path for path in (folder / packaging.folder, folder) if files_in_folder(path, packaging.files))
            archive = folder / packaging.archive
            for path in (*([archive] if packaging.archive and archive.is_file() else []), *unpacked):
                if (path.resolve(), packaging.files) not in seen:  # packagings of one set may share their names
                    seen.add((path.resolve(), packaging.files))
                    yield packaging, path


def search_folders(data: DataSet, sources: Sources) -> list[Path]:
    """Return the folders in which files are looked for, in order."""
    inside = [data.folder, "."]
    if data.shape[2] == 1:
        inside += ["raw", "MNIST/raw" if data.folder == "mnist" else "FashionMNIST/raw"]  # as torchvision has it
    return [folder / name for folder in sources.folders() for name in inside] + [Path(x) for x in data.other_folders]


def fingerprint(data: DataSet, sources: Sources) -> str:
    """Return a hash of the names, sizes and times of all files that `find_copies` finds; empty if there are none."""
    lines = []
    for packaging, path in find_copies(data, sources):
        unpacked = None if path.is_file() else files_in_folder(path, packaging.files)
        for file in unpacked.files.values() if unpacked else [path]:
            if isinstance(file, Path) and file.exists():
                state = file.stat()
                lines.append(f"{file.resolve()} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest() if lines else ""
