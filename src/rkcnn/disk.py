"""Files written whole, and trouble with the disk said in a sentence."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rkcnn.error import InputError

_REASONS = {
    errno.EROFS: "it is on a read-only file system",
    errno.EACCES: "permission is denied",
    errno.EPERM: "permission is denied",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.ENOTDIR: "a part of it is a file, not a folder",
    errno.EISDIR: "a folder of that name is in the way",
    errno.EEXIST: "a file of that name is in the way",
}


class DiskError(InputError):
    """Nothing can be written here; another source of the data won't help."""


@contextmanager
def writing_to(path: Path, remedy: str) -> Iterator[None]:
    """Turns a failure to write at `path` into one sentence that ends in what would work."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, str(error))
        raise DiskError(f"can't write to {path}: {reason}; {remedy}") from error


def write_whole(path: Path, content: bytes, remedy: str = "name another folder") -> None:
    """All of it or nothing: a temporary name, synced, then renamed."""
    part = path.with_name(f".{path.name}.part")
    with writing_to(path, remedy):
        try:
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        finally:
            part.unlink(missing_ok=True)
