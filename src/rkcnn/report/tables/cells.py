"""The texts of a row's cells, which text, Markdown and page share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rkcnn.report.costs import NONE, CostCheck, find_footprint, format_footprint
from rkcnn.report.results import ResultTable
from rkcnn.report.row import Row
from rkcnn.report.sentences import percent, signed
from rkcnn.report.statistics import Sample


class RowText(NamedTuple):
    """A row as text; errors are in percent, and a `*` follows what the paper quotes from others."""

    label: str
    params: CostCheck
    flops: CostCheck
    printed: str  # the paper's error
    last: str  # mean±std, or why there is none
    seeds: str
    best: str  # lowest(mean±std), as the paper prints it
    last_difference: str
    best_difference: str
    memory: tuple[str, ...]  # below MEMORY_HEADS


def write_row(results: ResultTable, row: Row, checks: tuple[CostCheck, CostCheck]) -> RowText:
    """Return the texts of a row; `checks` are its costs."""
    digits = results.decimals
    last_gap, best_gap = (NONE if gap is None else signed(gap, digits) for gap in differences_from_paper(results, row))
    printed = row.printed.printed + "*" * bool(row.printed.quoted) if row.printed else NONE
    last = write_sample(row.last, digits) if row.last else "diverged" if row.diverged else "not run yet"
    best = NONE
    if row.best:
        spread = write_sample(row.best, digits)
        best = f"{percent(row.best.min, 2)}({spread})" if row.best.n > 1 else percent(row.best.min, 2)
    memory = format_footprint(find_footprint(results, row))
    return RowText(row.label, *checks, printed, last, _seeds(row), best, last_gap, best_gap, memory)


def differences_from_paper(results: ResultTable, row: Row) -> tuple[float | None, float | None]:
    """Return our last-epoch and our best-epoch mean minus the paper's; None where they may not be compared."""
    printed = row.printed_mean
    if printed is None or row.last is None or row.best is None or not results.compares_with_paper(row):
        return None, None
    return row.last.mean - printed, row.best.mean - printed


def is_filled(column: Sequence[str]) -> bool:
    """Whether any cell of a column says something."""
    return any(cell not in (NONE, "") for cell in column)


def write_sample(sample: Sample, digits: int) -> str:
    """Write mean±std in percent, or the one value that there is."""
    if sample.std is None:
        return percent(sample.mean, digits)
    return f"{percent(sample.mean, digits)}±{percent(sample.std, digits)}"


def _seeds(row: Row) -> str:
    """Write 5; 3/5; 3/5, 1 diverged."""
    total = len(row.results) + len(row.diverged) + row.missing
    text = str(total) if len(row.results) == total else f"{len(row.results)}/{total}"
    return f"{text}, {len(row.diverged)} diverged" if row.diverged else text
