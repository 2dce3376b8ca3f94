"""Whether networks stand in the same order in our runs and in the paper, each run counted at its best epoch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from operator import and_
from statistics import fmean
from typing import NamedTuple

from rkcnn.report.paper import printed_sample
from rkcnn.report.results import ResultTable
from rkcnn.report.row import Row
from rkcnn.report.statistics import Difference, Sample, correct_by_holm, is_significant, welch_from_samples


class Order(NamedTuple):
    """The networks of a table that both we and the paper have trained, compared with each other two by two.

    Two networks are told apart by Welch's test with Holm's correction for all pairs. The numbers of pairs told apart
    are None where no pair can be tested, as with single runs.
    """

    networks: int
    differences: tuple[float, ...]  # our mean minus the paper's, of each network
    correlation: float | None  # Spearman's, of our means and the paper's; None with fewer than three networks
    pairs: int
    same: int  # pairs whose means stand in the paper's order
    by_paper: int | None  # pairs that the paper's own numbers tell apart
    by_ours: int | None  # pairs that our runs tell apart
    agreeing: int | None  # of those, the ones in the paper's order
    by_both: int | None  # pairs that both tell apart


def find_order(results: ResultTable) -> Order | None:
    """Compare every two networks of a table; None with fewer than two.

    A row of which runs diverged is left out, and its pairs count among the tests.
    """
    printed = [row for row in results.rows if row.printed_mean is not None and (row.results or row.diverged)]
    rows = [row for row in printed if row.all_finished]
    if len(rows) < 2:
        return None
    lost = len(printed) * (len(printed) - 1) // 2 - len(rows) * (len(rows) - 1) // 2
    pairs = list(combinations(rows, 2))
    ours = [_compare(one.best, two.best) for one, two in pairs]
    theirs = [_compare(printed_sample(one.printed), printed_sample(two.printed)) for one, two in pairs]
    signs = [_paper_gap(one, two) * _our_gap(one, two) for one, two in pairs]
    apart, apart_in_paper = _tell_apart(ours, lost), _tell_apart(theirs, lost)
    return Order(
        networks=len(rows),
        differences=tuple(_best(row) - _printed(row) for row in rows),
        correlation=correlate_ranks([_best(row) for row in rows], [_printed(row) for row in rows]),
        pairs=len(pairs),
        same=sum(sign > 0 for sign in signs),
        by_paper=None if apart_in_paper is None else sum(apart_in_paper),
        by_ours=None if apart is None else sum(apart),
        agreeing=None if apart is None else sum(told and sign > 0 for told, sign in zip(apart, signs, strict=True)),
        by_both=None if apart is None or apart_in_paper is None else sum(map(and_, apart, apart_in_paper)),
    )


def correlate_ranks(one: Sequence[float], two: Sequence[float]) -> float | None:
    """Return Spearman's correlation: Pearson's of the ranks, of which equal values share the mean.

    None with fewer than three values, or where all values of one side are equal.
    """
    if len(one) < 3:
        return None
    first, second = _rank(one), _rank(two)
    middle = (len(one) + 1) / 2
    product = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    size = sqrt(sum((a - middle) ** 2 for a in first) * sum((b - middle) ** 2 for b in second))
    return product / size if size else None


def _rank(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [fmean(i + 1 for i, other in enumerate(ordered) if other == value) for value in values]


def _best(row: Row) -> float:
    assert row.best is not None
    return row.best.mean


def _printed(row: Row) -> float:
    assert row.printed_mean is not None
    return row.printed_mean


def _our_gap(one: Row, two: Row) -> float:
    return _best(one) - _best(two)


def _paper_gap(one: Row, two: Row) -> float:
    return _printed(one) - _printed(two)


def _compare(one: Sample | None, two: Sample | None) -> Difference | None:
    """Compare two samples of two runs or more each."""
    return welch_from_samples(one, two) if one and two and min(one.n, two.n) > 1 else None


def _tell_apart(differences: Sequence[Difference | None], lost: int) -> list[bool] | None:
    """Return of each difference whether it is one after Holm's correction; None if none can be tested."""
    tested = [each.p for each in differences if each and each.p is not None]
    if not tested:
        return None
    corrected = iter(correct_by_holm(tested, lost))
    return [each is not None and each.p is not None and is_significant(next(corrected)) for each in differences]
