"""From a corridor's observer to events."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rkcnn.record.result import Epoch, Result
from rkcnn.record.run import Run
from rkcnn.reproduce.event import Event
from rkcnn.run.job import Job
from rkcnn.run.observer import Observer

PAUSE = 0.5  # seconds between two looks at where runs stand


class Reporter(Observer):
    """Tells each run's news by its place in the list."""

    def __init__(self, places: dict[Run, int], tell: Callable[[Event], None]) -> None:
        self._places = places
        self._tell = tell
        self._looked = 0.0

    def already_finished(self, folder: Path, result: Result) -> None:
        place = self._places[result.run]
        self._tell(Event("ends", place, 1.0, result.error, result.status))

    def run_started(self, job: Job, note: str) -> None:
        self._news("begins", job, note)

    def steps_done(self, jobs: Sequence[Job]) -> None:
        now = time.monotonic()
        if now - self._looked > PAUSE:
            self._looked = now
            for job in jobs:
                if not job.trainer.finished:
                    self._news("moves", job)

    def epoch_done(self, job: Job, epoch: Epoch) -> None:
        self._news("moves", job)

    def run_ended(self, job: Job, result: Result) -> None:
        self._news("ends", job, result.status)

    def _news(self, what: str, job: Job, text: str = "") -> None:
        trainer = job.trainer
        done = trainer.epoch * trainer.steps + trainer.step
        error = job.history[-1].held_out_error if job.history else None
        share = done / (job.run.recipe.epochs * trainer.steps)
        self._tell(Event(what, self._places[job.run], share, error, text))
