"""Comparisons of any runs on the same data by the same recipe. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rkcnn.error import InputError
from rkcnn.record.result import select_results
from rkcnn.report.any_runs import NAME, arrange_runs
from rkcnn.report.compare import find_damaged_predictions
from rkcnn.report.files import check_folder, write_files
from rkcnn.report.report import build_report
from rkcnn.report.results import find_conflicts
from rkcnn.report.tables.text import table_text

if TYPE_CHECKING:
    from rkcnn.report.compare import Comparison
    from rkcnn.report.report import TableReport
    from rkcnn.use.train import TrainingResult


class RunComparison:
    """What `rkcnn.compare` found; `print` shows it as text.

    `warnings` are sentences on records that can't be read, and on copies of a run with different results; `damaged` are
    those of the first kind alone.
    """

    def __init__(self, paths: Iterable[Path], reference: str | None = None) -> None:
        records, unreadable = select_results(paths)
        self.damaged = tuple(map(str, (*unreadable, *find_damaged_predictions(records))))
        self.warnings = (*self.damaged, *find_conflicts(records))
        self._report = build_report([arrange_runs(records, reference)])

    @property
    def table(self) -> TableReport:
        """The networks with their errors and costs, the comparisons, the figures and the notes, as values."""
        return self._report.tables[0]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each network against the reference: the difference of their errors as fractions, its interval and tests."""
        return self.table.pairs

    def write(self, folder: str | Path) -> list[Path]:
        """Write comparison.md, comparison.csv, the figures and the page report.html; return the paths."""
        return list(write_files(self._report, Path(folder)))

    def check_output(self, folder: Path) -> None:
        """Make the folder, and raise InputError if something in it would stop `write`."""
        check_folder([NAME], folder)

    def __str__(self) -> str:
        return table_text(self.table)

    def __repr__(self) -> str:
        return f"<RunComparison: {self.table.title}>"


def compare(runs: Iterable[str | Path | TrainingResult] | str | Path, *, reference: str | None = None) -> RunComparison:
    """Compare runs of any networks on the same data by the same recipe.

    runs       folders of finished runs, folders that hold some, or what `rkcnn.train` returned; seeds of one network
               are grouped
    reference  the network that the others are compared with, by its name; the first one if it is not given

    Differences of last-epoch errors have Welch's 95 % intervals over seeds and p-values corrected by Holm's method; an
    exact permutation test and McNemar's test stand beside them. Raises InputError, which names what differs, if the
    runs are on other data or by another recipe.
    """
    if not isinstance(runs, str | Path | Iterable):
        raise InputError(f"runs of type {type(runs).__name__} given; give a folder of runs, or a list of folders")
    if not isinstance(reference, str | None):
        raise InputError(f"a reference of type {type(reference).__name__} given; give the name of a network")
    given = [runs] if isinstance(runs, str | Path) else list(runs)
    for run in given:
        if not isinstance(run, str | Path) and not isinstance(getattr(run, "folder", None), Path):
            raise InputError(f"a run of type {type(run).__name__} given; give its folder, or what `rkcnn.train` gave")
    if not given:
        raise InputError("no runs given; name the folders of finished runs, as in runs/mnist-mini")
    # not isinstance(run, TrainingResult), which would import torch
    return RunComparison([Path(run if isinstance(run, str | Path) else run.folder) for run in given], reference)
