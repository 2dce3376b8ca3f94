"""Every number the paper printed: paper.csv, one line a cell of its four tables."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from rkcnn.error import InputError


class Cell(NamedTuple):
    """`printed` is the text as it stands there, `-` and `N/A` too; the columns of k are left to the network's name.

    `note` says of a cost why the cell is not this network's (SPEC 6), of an error how it came about. `runs` is how
    many runs an error of the authors' own stands for, `quoted` the paper that a cell of others was taken from.
    """

    table: str  # the label in its LaTeX
    row: str  # the network's name
    label: str  # the paper's name of it
    column: str  # params, params_100 (CIFAR-100's), flops, memory; or a data set, for its error
    unit: str
    printed: str
    runs: int | None
    quoted: str | None
    note: str | None


@cache
def _read() -> dict[str, tuple[Cell, ...]]:
    text = files("rkcnn.report").joinpath("paper.csv").read_text(encoding="utf-8")
    found: dict[str, list[Cell]] = {}
    for line in csv.DictReader(text.splitlines()):
        cell = Cell(
            **{name: line[name] for name in ("table", "row", "label", "column", "unit", "printed")},
            runs=int(line["runs"]) if line["runs"] else None,
            quoted=line["quoted"] or None,
            note=line["note"] or None,
        )
        found.setdefault(cell.table, []).append(cell)
    return {table: tuple(rows) for table, rows in found.items()}


def cells(table: str | None = None) -> tuple[Cell, ...]:
    """All cells of one of the paper's tables, or of all four, row by row."""
    tables = _read()
    if table is None:
        return tuple(cell for rows in tables.values() for cell in rows)
    if table not in tables:
        raise InputError(f"the paper has no table {table!r}; its tables are {', '.join(tables)}")
    return tables[table]
