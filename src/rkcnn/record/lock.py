"""One process a run folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rkcnn.error import InputError


class Locked(InputError):
    """Another process holds that folder."""

    def __init__(self, message: str, folder: Path) -> None:
        super().__init__(message)
        self.folder = folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder; refused while another process lives that holds it, free the moment it dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"can't write to {folder}: {error.strerror}; name another --out") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            number = os.pread(file, 20, 0).decode()
            other = f"process {number}" if number else "another process"
            raise Locked(f"{other} is training in {folder}; wait for it or stop it", folder) from None
        with suppress(OSError):  # the lock is what counts: on a full disk it holds without the number
            os.ftruncate(file, 0)
            os.pwrite(file, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(file)
