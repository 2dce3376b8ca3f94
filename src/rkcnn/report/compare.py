"""The rows of a table against one of them."""

from __future__ import annotations

from math import comb
from typing import NamedTuple

from rkcnn.data.sets import SETS
from rkcnn.evaluation.binomial import McNemar, mcnemar
from rkcnn.record.tables import Table
from rkcnn.report.errors import printed_error
from rkcnn.report.mistakes import find_mistakes
from rkcnn.report.statistics import MOST_SPLITS, Difference, Permutation, holm, permute, separates, welch
from rkcnn.report.view import Row, View

OWN_REFERENCES = {"ablation": "RKCNN-I-2_2_2@k=120", "scaling": "RKCNN-I-2_2_2@k=80"}


class Contrast(NamedTuple):
    """One row against the table's reference: differences are row - reference, of last-epoch errors.

    `p` is Welch's, corrected by Holm for `among` comparisons, those of the table that were tested or lost to a
    divergence; it decides. The permutation's stands beside it uncorrected: its smallest value, times their number, may
    exceed any level.
    """

    row: Row
    reference: Row
    difference: Difference
    p: float | None
    among: int
    permutation: Permutation | None  # with more seeds than it can be counted for there is none
    mcnemar: McNemar | None  # seed 0 against seed 0, where both have predictions and the labels are here

    @property
    def separable(self) -> bool:
        return separates(self.p)


def compare(view: View) -> list[Contrast]:
    """Every row that has two runs or more against its reference, if that has; in the table's order.

    A row of which runs diverged takes no part, on either side: what is left of it is chosen. Smoke compares nothing,
    however many seeds it has.
    """
    if view.preset == "smoke":
        return []
    rows = {row.spec: row for row in view.rows}
    against = [(row, other) for row in view.rows if (other := rows[reference_of(view.table, row.spec)]) is not row]
    pairs = [(row, other) for row, other in against if min(_count(row), _count(other)) > 1]
    differences = [welch(_errors(row), _errors(other)) for row, other in pairs]
    chances = [difference.p for difference in differences if difference.p is not None]
    lost = sum(bool(row.diverged or other.diverged) for row, other in against)
    corrected = iter(holm(chances, lost))
    data = SETS[view.table.data_at(view.preset)]
    compared = {row.spec: row for pair in pairs for row in pair}
    mistakes = {spec: find_mistakes(row, data) for spec, row in compared.items()}
    contrasts = []
    for (row, other), difference in zip(pairs, differences, strict=True):
        one, two = mistakes[row.spec], mistakes[other.spec]
        judged = mcnemar(one.tolist(), two.tolist()) if one is not None and two is not None else None
        p = None if difference.p is None else next(corrected)
        contrasts.append(Contrast(row, other, difference, p, len(chances) + lost, _permute(row, other), judged))
    return contrasts


def reference_of(table: Table, spec: str) -> str:
    """What a row is compared with: the RKCNN of the lowest error in the paper, so that ours don't choose it.

    In the norms table it is that of the row's norm, in our other tables the network they start from.
    """
    if table.name in OWN_REFERENCES:
        return OWN_REFERENCES[table.name]
    if table.name == "norms":
        half = len(table.specs) // 2  # all group norm, then all batch norm
        same = table.specs[:half] if spec in table.specs[:half] else table.specs[half:]
        return next(name for name in same if name.startswith("RKCNN-R-"))
    assert table.paper is not None
    label = table.paper.label
    printed = ((printed_error(label, name, table.data), name) for name in table.specs if name.startswith("RKCNN-"))
    return min((cell.lowest, name) for cell, name in printed if cell and cell.lowest is not None)[1]


def _count(row: Row) -> int:
    """How many runs can be compared."""
    return len(row.results) if row.whole else 0


def _permute(row: Row, other: Row) -> Permutation | None:
    countable = comb(_count(row) + _count(other), _count(row)) <= MOST_SPLITS
    return permute(_errors(row), _errors(other)) if countable else None


def _errors(row: Row) -> list[float]:
    return [result.error for result in row.results if result.error is not None]
