"""Two networks side by side, as the pages of docs/ write them: errors, their difference, and which are told apart."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from rkcnn.report.costs import shorten
from rkcnn.report.report import TableReport
from rkcnn.report.row import Row
from rkcnn.report.sentences import count, format_difference, join, percent, signed
from rkcnn.report.statistics import correct_by_holm, is_significant, welch


def has_spread(*rows: Row) -> bool:
    """Whether each of the networks has two runs or more."""
    return min(len(row.errors) for row in rows) > 1


def find_apart(tested: Sequence[tuple[tuple[Row, Row], float]]) -> list[str]:
    """Return which pairs differ after Holm's correction, given the p-value of each, as `A and B`."""
    corrected = correct_by_holm([p for _, p in tested])
    apart = [pair for (pair, _), p in zip(tested, corrected, strict=True) if is_significant(p)]
    return [f"{one.label} and {two.label}" for one, two in apart]


def say_apart(pairs: int, apart: Sequence[str]) -> str:
    """Say which of so many pairs are told apart."""
    start = f"After Holm's correction for all {pairs} pairs" if pairs > 1 else "By Welch's test"
    return f"{start}, {f'these are told apart: {join(apart)}' if apart else 'none is told apart'}."


def say_row(part: TableReport, row: Row) -> str:
    """Write pre-act ResNet: 0.420 % (52.23 K); with the number of runs if it is not the table's."""
    planned = part.results.table.seeds if part.results.table else 0
    runs = count(len(row.errors), "run") if len(row.errors) != planned else ""
    aside = ", ".join(filter(None, (shorten(row.params) if row.params else "", runs)))
    return f"{row.label}: {percent(fmean(row.errors), part.results.decimals)} %{f' ({aside})' * bool(aside)}"


def subtract(part: TableReport, row: Row, other: Row) -> str:
    """Write the difference of two networks, with its interval where both have two runs or more."""
    digits = part.results.decimals
    if not has_spread(row, other):
        return f"{signed(fmean(row.errors) - fmean(other.errors), digits)} (no interval)"
    value, *interval = format_difference(welch(row.errors, other.errors), digits)
    return f"{value} ({interval[0]})" if interval else value
