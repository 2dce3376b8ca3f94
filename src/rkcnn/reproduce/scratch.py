"""A folder for as long as a task takes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rkcnn.disk import locked
from rkcnn.error import InputError

HELD = ".lock"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder of this process, gone afterwards; so are, first, those of processes that were killed."""
    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"rkcnn-{os.getpid()}-") as made, locked(Path(made)):
        yield Path(made)


def _sweep(place: Path) -> None:
    """Remove scratch folders that nobody holds.

    The number in its name keeps one that was made a moment ago and is not yet held; that it is held, one of another
    container, where numbers mean other processes; and that it was held once, what somebody else named so.
    """
    for path in place.glob("rkcnn-*-*"):
        number = path.name.split("-")[1]
        with suppress(OSError, InputError):
            ours = path.lstat().st_uid == os.getuid() and (path / HELD).is_file()
            if ours and number.isdecimal() and not Path("/proc", number).exists():
                with locked(path):
                    shutil.rmtree(path)
