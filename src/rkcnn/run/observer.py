"""Who is told while runs go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rkcnn.record.result import Epoch, Result
    from rkcnn.run.job import Job


class Observer:
    """What is told while runs go on; a command line shows it, and this one says nothing."""

    def found(self, folder: Path, result: Result) -> None:
        """A run was finished already."""

    def begins(self, job: Job, note: str) -> None: ...

    def steps(self, jobs: Sequence[Job]) -> None:
        """All of them did a step."""

    def epoch(self, job: Job, epoch: Epoch) -> None: ...

    def kept(self, job: Job) -> None:
        """A checkpoint lies in the job's folder."""

    def ends(self, job: Job, result: Result) -> None: ...
