"""Records of tables made up for tests, in folders of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from outcome import outcome
from rkcnn.record.memory import read_memories
from rkcnn.record.result import Result
from rkcnn.record.tables import TABLES
from rkcnn.report.report import TableReport, build_report
from rkcnn.report.results import ResultTable, build_result_table, read_records
from rkcnn.report.row import Row

ERRORS = {
    "ResNet@k=32": (0.0038, 0.0041, 0.0039, 0.0043, 0.0040),
    "ResNet-bottleneck@k=32": (0.0052, 0.0055, 0.0050, 0.0057, 0.0053),
    "RKCNN-E-2@k=32": (0.0037, 0.0040, 0.0039, 0.0042, 0.0036),
    "RKCNN-I-2@k=32": (0.0035, 0.0033, 0.0037, 0.0034, 0.0036),
    "RKCNN-R-2@k=32": (0.0036, 0.0033, 0.0038, 0.0034),
}
"""Last-epoch errors of some rows of the mnist table: five seeds, of the last row four."""


ALONE = {"gpu": None, "together": 1}


def put_records(
    folder: Path,
    errors: Mapping[str, Sequence[float | None]] = ERRORS,
    table: str = "mnist",
    preset: str = "paper",
    precision: str | None = None,
    **changes: Any,
) -> list[Path]:
    """A result.json for each error of each row, by seed; None diverged. The best epoch is 0.0002 below the last.

    Every epoch before these two has an error of 10 %.
    """
    folders = []
    for spec, values in errors.items():
        runs = TABLES[table].runs(preset, spec, max(1, len(values)), precision)
        for run, error in zip(runs, values, strict=True):
            made = _diverged() if error is None else outcome(_errors_by_epoch(error, run.recipe.epochs))
            made = replace(made, **{"run": run, "machine": ALONE, **changes})
            at = folder / run.folder
            at.mkdir(parents=True)
            (at / "result.json").write_bytes(made.to_json())
            folders.append(at)
    return folders


def _errors_by_epoch(error: float, epochs: int) -> tuple[float, ...]:
    return (*[0.1] * epochs, error - 0.0002, error)[-epochs:]


def results_of(
    folder: Path, table: str = "mnist", preset: str | None = None, precision: str | None = None
) -> ResultTable:
    """The records below a folder, arranged as a table."""
    return build_result_table(TABLES[table], read_records(folder)[0], preset, read_memories(folder)[0], precision)


def row_of(folder: Path, network: str, table: str = "mnist", preset: str | None = None) -> Row:
    """The row of one network in a table of the records below a folder."""
    return next(row for row in results_of(folder, table, preset).rows if row.network == network)


def report_of(folder: Path, table: str = "mnist", preset: str | None = None) -> TableReport:
    """The report on one table of the records below a folder."""
    return build_report([results_of(folder, table, preset)]).tables[0]


def words_of(svg: str) -> list[str]:
    """A picture's text, which holds every number; where it stands may be otherwise in another matplotlib."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def _diverged() -> Result:
    return outcome((), status="diverged: the loss is nan at step 12", error=None, error_best=None)
