"""Events: what a process that trains runs reports about them, each as one line of JSON. Imports no torch.

A run whose process died is tried again, as long as it makes progress.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rkcnn.run.observer import Observer
from rkcnn.run_folder import find_checkpoints

if TYPE_CHECKING:
    from rkcnn.record.result import Epoch, Result
    from rkcnn.record.run import Run
    from rkcnn.run.job import Job


Kind = Literal["begins", "advances", "ends", "fails", "crashes", "busy", "silent", "idle"]

REPORT_SECONDS = 0.5  # the shortest time between two reports on how far the runs of a process are


@dataclass(frozen=True)
class Event:
    """Something that happened to a run.

    begins    training starts, or continues from a checkpoint
    advances  some more steps are done
    ends      there is a result; also when the run diverged
    fails     the run can't be trained and is given up
    crashes   the process that trained the run died; the run will be tried again
    busy      another process is training the run; reported once
    silent    the process that trains the run has reported nothing for a long time
    idle      a worker process asks for its next assignment; `index` is -1
    """

    kind: Kind
    index: int  # of the run in the list of runs
    fraction: float = 0.0  # of the run's steps that are done
    error: float | None = None  # on the held-out images after the last complete epoch
    message: str = ""  # a note, how the run ended, why it failed or crashed, or which process is training it

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def read_event(line: str) -> Event:
    """Return the event that `Event.to_json` wrote."""
    return Event(**json.loads(line))


def failure(index: int, error: Exception) -> Event:
    """Return the event that a run fails because of `error`, with its message in one line."""
    return Event("fails", index, message=" ".join(f"{error}".split()) or type(error).__name__)


class Reporter(Observer):
    """Turns what training tells its observer into events, and passes each to `report`.

    `indices` gives the index of each run in the list of runs.
    """

    def __init__(self, indices: dict[Run, int], report: Callable[[Event], None]) -> None:
        self._indices = indices
        self._report = report
        self._last_report = 0.0

    def already_finished(self, folder: Path, result: Result) -> None:
        self._report(Event("ends", self._indices[result.run], 1.0, result.error, result.status))

    def run_started(self, job: Job, note: str) -> None:
        self._report_job("begins", job, note)

    def steps_done(self, jobs: Sequence[Job]) -> None:
        now = time.monotonic()
        if now - self._last_report > REPORT_SECONDS:
            self._last_report = now
            for job in jobs:
                if not job.trainer.finished:
                    self._report_job("advances", job)

    def epoch_done(self, job: Job, epoch: Epoch) -> None:
        self._report_job("advances", job)

    def run_ended(self, job: Job, result: Result) -> None:
        self._report_job("ends", job, result.status)

    def _report_job(self, kind: Kind, job: Job, message: str = "") -> None:
        trainer = job.trainer
        done = trainer.epoch * trainer.steps + trainer.step
        fraction = done / (job.run.recipe.epochs * trainer.steps)
        error = job.history[-1].held_out_error if job.history else None
        self._report(Event(kind, self._indices[job.run], fraction, error, message))


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
