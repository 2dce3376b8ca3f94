"""Parameters and FLOPs as the records counted them, checked against the paper's cells."""

from __future__ import annotations

from typing import NamedTuple

from rkcnn.report.paper import COST_TABLES, SLIPS, UNITS, agrees
from rkcnn.report.results import ResultTable, Row

NAMES = {"params": "params", "params_100": "params", "flops": "FLOPs"}
LETTERS = {unit: letter for letter, unit in UNITS.items()}


class CostCheck(NamedTuple):
    """One cost of a row; `state` is agrees, slip, differs, not counted (no record), or - (no cell to check)."""

    column: str
    printed: str | None  # with its unit
    counted: int | None
    state: str
    why: str | None = None  # of a slip

    @property
    def text(self) -> str:
        """What was counted; where nothing was, what the paper prints."""
        if self.counted is None:
            return self.printed or "-"
        return shorten(self.counted, 3) if self.column == "flops" else f"{self.counted:,}"

    @property
    def remark(self) -> str:
        """What a reader of `text` has to know: that the paper's cell differs, or that `text` is the paper's."""
        if self.state == "not counted":
            return "the paper's"
        return f"{self.state}: paper {self.printed}" if self.state in ("slip", "differs") else ""


def check_costs(results: ResultTable, row: Row) -> tuple[CostCheck, CostCheck]:
    """Check a row's parameters, and its FLOPs by the paper's rule.

    Runs of the smoke preset are trained on digits, so their counts are checked in tables of digits alone.
    """
    paper = results.paper
    if paper is None or results.table is None:
        return CostCheck("params", None, row.params, "-"), CostCheck("flops", None, row.paper_flops, "-")
    params = "params_100" if results.table.data == "cifar100" else "params"
    other_data = results.preset == "smoke" and results.table.data != "mnist"
    counts = (None, None) if other_data else (row.params, row.paper_flops)
    return _check(paper.label, row.spec, params, counts[0]), _check(paper.label, row.spec, "flops", counts[1])


def shorten(count: int, digits: int = 2) -> str:
    """Write a count with its unit, as in 8.43 M."""
    unit = next((unit for unit in (1e9, 1e6, 1e3) if count >= unit), None)
    return str(count) if unit is None else f"{count / unit:.{digits}f} {LETTERS[unit]}"


def _check(label: str, spec: str, column: str, counted: int | None) -> CostCheck:
    table = COST_TABLES[label]
    cells = table.rows.get(spec)
    digits = getattr(cells, column) if cells else None
    if digits is None:
        return CostCheck(column, None, counted, "-")
    unit = table.flops_unit if column == "flops" else table.params_unit
    printed = f"{digits} {LETTERS[unit]}"
    if counted is None:
        return CostCheck(column, printed, None, "not counted")
    if agrees(counted, digits, unit):
        return CostCheck(column, printed, counted, "agrees")
    why = SLIPS.get((label, spec, column))
    return CostCheck(column, printed, counted, "slip" if why else "differs", why)
