"""Runs whose process died: tried again, but not for ever at one place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rkcnn.reproduce.event import Event
from rkcnn.run_folder import find_checkpoints

DEATHS = 3  # of its process without a new checkpoint in between, until a run is given up
PATIENCE = 120.0  # seconds for a process that was asked to stop to keep or send what it has


class Retries:
    """Of each run, those at which its checkpoints were the same as at the death before.

    So one that is often stopped goes on for as long as it comes further, and one that kills its process is given up.
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._stood: dict[int, set[str]] = {}

    def judge(self, run: int, share: float, why: str, folder: Path) -> Event:
        """It dies, or fails if it is to be given up; in `folder` are its checkpoints."""
        stands = {path.name for path in find_checkpoints(folder)}
        further = stands != self._stood.get(run, set())
        self._counts[run] = 0 if further else self._counts[run] + 1
        self._stood[run] = stands
        if self._counts[run] < DEATHS:
            return die(run, share, why)
        return Event("fails", run, text=f"{why}; it came no further in {DEATHS} attempts")


def die(run: int, share: float, why: str) -> Event:
    return Event("dies", run, share, text=f"{why}; it goes on from its last checkpoint")
