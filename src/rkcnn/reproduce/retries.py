"""Decides whether a run whose process died is tried again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rkcnn.reproduce.events import Event
from rkcnn.run_folder import find_checkpoints

MOST_CRASHES = 3  # a run is given up after so many crashes in a row without a new checkpoint


class Retries:
    """Counts, for each run, consecutive crashes of its process that left no new checkpoint.

    A run that is often interrupted continues as long as it makes progress; one that kills its process is given up.
    """

    def __init__(self) -> None:
        self._crashes: Counter[int] = Counter()
        self._checkpoints: dict[int, set[str]] = {}

    def after_crash(self, index: int, fraction: float, why: str, folder: Path) -> Event:
        """Return the event that the run crashes, or that it fails if it is to be given up.

        `folder` holds its checkpoints; `why` says how its process died.
        """
        checkpoints = {path.name for path in find_checkpoints(folder)}
        progressed = checkpoints != self._checkpoints.get(index, set())
        self._checkpoints[index] = checkpoints
        self._crashes[index] = 0 if progressed else self._crashes[index] + 1
        if self._crashes[index] < MOST_CRASHES:
            return crash(index, fraction, why)
        return Event("fails", index, message=f"{why}; {MOST_CRASHES} attempts in a row made no new checkpoint")


def crash(index: int, fraction: float, why: str) -> Event:
    """Return the event that the process of a run died and that the run will be tried again."""
    return Event("crashes", index, fraction, message=f"{why}; the run continues from its last checkpoint")
