"""Costs in the records beside the paper's cells."""

from __future__ import annotations

from typing import NamedTuple

from rkcnn.report.paper import SLIPS, TABLES, agrees
from rkcnn.report.view import Row, View

NAMES = {"params": "params", "params_100": "params", "flops": "FLOPs"}
LETTERS = {1e3: "K", 1e6: "M", 1e9: "G"}


class Check(NamedTuple):
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
        return short(self.counted, 3) if self.column == "flops" else f"{self.counted:,}"

    @property
    def remark(self) -> str:
        """What has to be read with `text`: that the paper's cell is another, or that there is no other."""
        if self.state == "not counted":
            return "the paper's"
        return f"{self.state}: paper {self.printed}" if self.state in ("slip", "differs") else ""


def check_costs(view: View, row: Row) -> tuple[Check, Check]:
    """Parameters, and FLOPs by the paper's rule; smoke sees digits, so its counts check tables of digits alone."""
    paper = view.table.paper
    if paper is None:
        return Check("params", None, row.params, "-"), Check("flops", None, row.paper_flops, "-")
    params = "params_100" if view.table.data == "cifar100" else "params"
    return _check(view, paper.label, row, params, row.params), _check(view, paper.label, row, "flops", row.paper_flops)


def short(count: int, digits: int = 2) -> str:
    """8.43 M"""
    unit = next((unit for unit in (1e9, 1e6, 1e3) if count >= unit), None)
    return str(count) if unit is None else f"{count / unit:.{digits}f} {LETTERS[unit]}"


def _check(view: View, place: str, row: Row, column: str, counted: int | None) -> Check:
    table = TABLES[place]
    cells = table.rows.get(row.spec)
    digits = getattr(cells, column) if cells else None
    if view.preset == "smoke" and view.table.data != "mnist":
        counted = None
    if digits is None:
        return Check(column, None, counted, "-")
    unit = table.flops_unit if column == "flops" else table.params_unit
    printed = f"{digits} {LETTERS[unit]}"
    if counted is None:
        return Check(column, printed, None, "not counted")
    if agrees(counted, digits, unit):
        return Check(column, printed, counted, "agrees")
    why = SLIPS.get((place, row.spec, column))
    return Check(column, printed, counted, "slip" if why else "differs", why)
