"""One network of a table: its runs, what they measured, and what the paper prints for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rkcnn.error import InputError
from rkcnn.model.spec import spec_of
from rkcnn.record.errors_by_statistics import EACH, ErrorsByStatistics
from rkcnn.record.memory import Memory
from rkcnn.record.result import Result
from rkcnn.report.paper import PrintedError
from rkcnn.report.statistics import Sample

CORRECTED = "corrected by hand"  # in notes about the record itself, which has no bearing on its errors


@dataclass(frozen=True)
class Row:
    """One network of a table: its runs, and the error that the paper prints for it."""

    network: str
    family: str
    label: str  # the paper's name of the network, or ours
    params: int | None  # as the records count them
    flops: int | None  # 2 x MAC of one image
    printed: PrintedError | None
    results: tuple[Result, ...]  # of the finished runs, by seed
    diverged: tuple[Result, ...]
    missing: int  # how many runs there are to do until the row has as many as its table asks for
    paper_flops: int | None = None  # FLOPs counted by the paper's rule
    folders: tuple[Path, ...] = ()  # of `results`, where predictions may lie; empty if they are not known
    memory: Memory | None = None  # as it was measured, whatever the recipe
    by_statistics: tuple[ErrorsByStatistics, ...] = ()  # what was measured of runs with other running statistics

    @property
    def errors(self) -> list[float]:
        """The last epoch's error of each finished run."""
        return [result.error for result in self.results if result.error is not None]

    @property
    def last(self) -> Sample | None:
        """The errors of the last epoch. Nothing about them was chosen on the test set, so they are the main result."""
        return _sample(self.errors)

    @property
    def best(self) -> Sample | None:
        """The errors of each run's best epoch, which is chosen on the held-out images themselves."""
        return _sample(result.error_best for result in self.results)

    @property
    def printed_mean(self) -> float | None:
        """The paper's mean error, or its only number."""
        if self.printed is None:
            return None
        return self.printed.lowest if self.printed.mean is None else self.printed.mean

    @property
    def all_finished(self) -> bool:
        """Whether there are results and no run diverged; the survivors of a row that lost some are a biased sample."""
        return bool(self.results) and not self.diverged

    @property
    def side_by_side(self) -> int | None:
        """The most runs that were trained at once on one device; None where a record doesn't say."""
        counts = [result.machine.get("together") for result in self.results]
        known = [number for number in counts if isinstance(number, int)]
        return max(known) if known and len(known) == len(counts) else None

    @property
    def seconds(self) -> float | None:
        """The mean training time of a run."""
        return fmean(result.seconds for result in self.results) if self.results else None

    @property
    def training_error(self) -> float:
        """The mean over runs of the last epoch's error on the training images, as they were augmented."""
        return fmean(result.epochs[-1].training_error for result in self.results)

    @property
    def evaluations_of_a_norm(self) -> int:
        """For how many evaluations of f a batch norm in f has one set of running statistics, on average over periods.

        That is 1 for networks that share none (`ModelSpec.shares_statistics`), or that this process doesn't know.
        """
        try:
            spec = spec_of(self.results[0].run.network) if self.results else None
        except InputError:
            return 1
        if spec is None or not spec.shares_statistics:
            return 1
        return max(1, round((self.results[0].evaluations or 0) / spec.periods))

    @property
    def errors_with_a_set_each(self) -> list[float]:
        """What the runs err, with the same weights, where each evaluation of f has running statistics of its own.

        Empty unless evaluations share them and every run was measured.
        """
        measured = {found.run: found.error(EACH) for found in self.by_statistics}
        errors = [measured[result.run] for result in self.results if result.run in measured]
        complete = self.all_finished and len(errors) == len(self.results)
        return errors if complete and self.evaluations_of_a_norm > 1 else []

    @property
    def notes(self) -> tuple[str, ...]:
        """What the records say about themselves, each note once."""
        found = (note for result in (*self.results, *self.diverged) for note in result.notes)
        return tuple(dict.fromkeys(found))

    @property
    def notes_on_errors(self) -> tuple[str, ...]:
        """The notes that bear on the errors; the others say what was corrected in a record."""
        return tuple(note for note in self.notes if CORRECTED not in note)


def _sample(errors: Iterable[float | None]) -> Sample | None:
    values = [error for error in errors if error is not None]
    return Sample.of(values) if values else None
