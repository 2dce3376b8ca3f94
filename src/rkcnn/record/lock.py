"""One process a run folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rkcnn.error import InputError
from rkcnn.run_folder import LOCK

HOLDER = "RKCNN_HOLDER"  # set for a worker: its driver, which is the one to stop, for it replaces its workers


class Locked(InputError):
    """Another process holds that folder."""

    def __init__(self, holder: str, folder: Path) -> None:
        super().__init__(f"{holder} is training in {folder}; wait for it or stop it")
        self.holder, self.folder = holder, folder


@contextmanager
def locked(folder: Path, remedy: str = "name another --out") -> Iterator[None]:
    """Hold a run's folder; refused while another process lives that holds it, free the moment it dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"can't write to {folder}: {error.strerror}; {remedy}") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            number = os.pread(file, 20, 0).decode()
            raise Locked(f"process {number}" if number else "another process", folder) from None
        except OSError as error:  # as on some network file systems
            why = f"its file system locks no files ({error.strerror})"
            raise InputError(f"can't hold {folder}: {why}; {remedy}") from None
        with suppress(OSError):  # the lock is what counts: on a full disk it holds without the number
            os.ftruncate(file, 0)
            os.pwrite(file, os.environ.get(HOLDER, str(os.getpid())).encode(), 0)
        yield
    finally:
        os.close(file)
