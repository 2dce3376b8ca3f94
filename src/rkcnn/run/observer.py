"""What can be followed while runs are trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rkcnn.record.result import Epoch, Result
    from rkcnn.run.job import Job


class Observer:
    """Its methods are called while runs are trained; override those of interest. This one does nothing."""

    def already_finished(self, folder: Path, result: Result) -> None:
        """A run had a result already and is not trained again."""

    def compiling(self, job: Job) -> None:
        """The network is about to be compiled, which may take a minute."""

    def run_started(self, job: Job, note: str) -> None:
        """A run is ready for its next step; `note` says what is unusual about it, if anything."""

    def steps_done(self, jobs: Sequence[Job]) -> None:
        """Each of these runs that is still training has taken one more step."""

    def epoch_done(self, job: Job, epoch: Epoch) -> None:
        """A run has finished an epoch, and its error on the held-out images is known."""

    def checkpoint_written(self, job: Job) -> None:
        """The folder of a run has a new checkpoint."""

    def run_ended(self, job: Job, result: Result) -> None:
        """A run has finished or diverged, and its result is written."""
