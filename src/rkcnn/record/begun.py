"""Runs that have begun and not ended, told by their checkpoints. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rkcnn.error import InputError
from rkcnn.record.result import Epoch, read_progress
from rkcnn.record.run import Run
from rkcnn.run_folder import find_begun_folders, find_checkpoints


class Begun(NamedTuple):
    run: Run
    epochs: tuple[Epoch, ...]  # those that are done
    seconds: float


def find_begun(folder: Path) -> Iterator[tuple[Path, Begun | InputError]]:
    """Every run below a folder with a checkpoint and no result, in order of their names."""
    for place in find_begun_folders(folder):
        yield place, _read(place)


def _read(place: Path) -> Begun | InputError:
    """From the newest checkpoint that can be read; the reason if none can."""
    for path in reversed(find_checkpoints(place)):
        try:
            facts = json.loads(path.read_bytes())
            run, epochs = read_progress(facts["identity"], facts["history"])
            return Begun(run, epochs, sum(epoch.seconds for epoch in epochs))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return InputError(f"no checkpoint in {place} can be read; remove them to start anew")
