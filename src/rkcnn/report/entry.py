"""A row of a table as the texts of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rkcnn.report.cost_check import Check, check_costs
from rkcnn.report.footprint import NONE, find_footprint, say_footprint
from rkcnn.report.statistics import Sample
from rkcnn.report.view import Row, View


class Entry(NamedTuple):
    """Errors in percent; a `*` follows what the paper quotes from others."""

    label: str
    params: Check
    flops: Check
    theirs: str
    last: str  # mean±std, or why there is none
    seeds: str
    best: str  # lowest(mean±std), as the paper prints it
    last_difference: str
    best_difference: str
    memory: tuple[str, ...]  # below footprint.HEADS


def entries(view: View) -> list[Entry]:
    return [_entry(view, row) for row in view.rows]


def is_filled(column: Sequence[str]) -> bool:
    """Whether any of its cells says something."""
    return any(cell not in (NONE, "") for cell in column)


def decimals(view: View) -> int:
    """Of means and deviations: one more than of a single error where the paper gives one more, on MNIST."""
    return 3 if view.table.data_at(view.preset) == "mnist" else 2


def percent(value: float, digits: int) -> str:
    return f"{100 * value:.{digits}f}"


def signed(value: float, digits: int) -> str:
    return f"{round(100 * value, digits) + 0.0:+.{digits}f}"  # no -0.000


def is_comparable(view: View, row: Row) -> bool:
    """Whether a row's errors may be set against the paper's: trained by its recipe, and no run diverged."""
    return row.whole and view.preset == "paper"


def printed_mean(row: Row) -> float | None:
    """The paper's mean, or its only number."""
    if row.printed is None:
        return None
    return row.printed.lowest if row.printed.mean is None else row.printed.mean


def _entry(view: View, row: Row) -> Entry:
    digits = decimals(view)
    theirs = printed_mean(row)
    last_gap, best_gap = (
        signed(ours.mean - theirs, digits) if ours and theirs is not None and is_comparable(view, row) else NONE
        for ours in (row.last, row.best)
    )
    printed = row.printed.printed + "*" * bool(row.printed.quoted) if row.printed else NONE
    last = _spread(row.last, digits) if row.last else "diverged" if row.diverged else "not run yet"
    best = NONE
    if row.best:
        spread = _spread(row.best, digits)
        best = f"{percent(row.best.min, 2)}({spread})" if row.best.n > 1 else percent(row.best.min, 2)
    memory = say_footprint(find_footprint(view, row))
    return Entry(row.label, *check_costs(view, row), printed, last, _seeds(row), best, last_gap, best_gap, memory)


def _spread(sample: Sample, digits: int) -> str:
    if sample.std is None:
        return percent(sample.mean, digits)
    return f"{percent(sample.mean, digits)}±{percent(sample.std, digits)}"


def _seeds(row: Row) -> str:
    """5; 3/5; 3/5, 1 diverged."""
    total = len(row.results) + len(row.diverged) + row.missing
    text = str(total) if len(row.results) == total else f"{len(row.results)}/{total}"
    return f"{text}, {len(row.diverged)} diverged" if row.diverged else text
