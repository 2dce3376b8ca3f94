"""Sends a run's files between the machines of a Ray cluster: names and bytes, no code."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rkcnn.disk import write_atomically, writing_to
from rkcnn.run_folder import RESULT, find_checkpoints, is_checkpoint, tensors_of

Files = dict[str, bytes]  # content by file name


def pack_checkpoints(folder: Path, newest_only: bool = False) -> Files:
    """Return the files of a run's checkpoints, or of the newest alone; each is a JSON file and its tensors."""
    files: Files = {}
    for path in find_checkpoints(folder)[-1 if newest_only else 0 :]:
        with suppress(FileNotFoundError):  # it has just been replaced by a newer one
            files |= {part.name: part.read_bytes() for part in (path, tensors_of(path))}
    return files


def unpack_checkpoints(folder: Path, files: Files, remedy: str) -> None:
    """Write checkpoints beside those in a folder and keep the newest, so an old one that arrives late does no harm.

    A failure to write ends in an InputError that recommends `remedy`.
    """
    from rkcnn.fit.checkpoint import prune  # here, because the mailbox's process should not load torch

    with writing_to(folder, remedy):
        folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(files, key=lambda name: name.endswith(".json")):  # the JSON last: it confirms the tensors
        write_atomically(folder / name, files[name], remedy)
    prune(folder)


def pack_results(folder: Path) -> Files:
    """Return the files that a finished run leaves beside its checkpoints."""
    names = (path.name for path in folder.iterdir())
    return {
        name: (folder / name).read_bytes() for name in names if not name.startswith(".") and not is_checkpoint(name)
    }


def unpack_results(folder: Path, files: Files, remedy: str) -> None:
    """Write a finished run's files, result.json last: where it exists, the others do too."""
    for name in sorted(files, key=lambda name: name == RESULT):
        write_atomically(folder / name, files[name], remedy)


class Mailbox:
    """Holds what tasks have sent and the driver has not fetched: events as JSON, and each run's newest checkpoint.

    It is a Ray actor on the driver's machine, so it lives as long as the driver, whichever other machine dies.
    """

    def __init__(self) -> None:
        self._events: list[str] = []
        self._checkpoints: dict[int, Files] = {}

    def put_event(self, event: str) -> None:
        self._events.append(event)

    def put_checkpoint(self, index: int, files: Files) -> None:
        self._checkpoints[index] = files

    def fetch(self) -> tuple[list[str], dict[int, Files]]:
        """Return the events and the checkpoints, by the index of their run, and forget them."""
        content = self._events, self._checkpoints
        self._events, self._checkpoints = [], {}
        return content
