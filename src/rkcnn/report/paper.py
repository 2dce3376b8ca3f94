"""What the paper printed: the cost columns of its four tables, and the cells known to be slips."""

from __future__ import annotations

from typing import Any, NamedTuple

from rkcnn.report.cells import cells

COSTS = ("params", "params_100", "flops")


class Printed(NamedTuple):
    """One row's cost cells, as the digits stand there; `params_100` is the CIFAR-100 column."""

    label: str
    flops: str | None
    params: str
    params_100: str | None = None


class Table(NamedTuple):
    flops_unit: float
    params_unit: float
    rows: dict[str, Printed]  # by the network's name

    @property
    def letters(self) -> tuple[str, str]:
        """The units of params and FLOPs."""
        letters = {1e3: "K", 1e6: "M", 1e9: "G"}
        return letters[self.params_unit], letters[self.flops_unit]


def _table(key: str) -> Table:
    rows: dict[str, dict[str, Any]] = {}
    units: dict[str, float] = {}
    for cell in cells(key):
        row = rows.setdefault(cell.row, {"label": cell.label, "flops": None})
        if cell.column in COSTS:
            row[cell.column] = cell.printed if cell.printed != "-" else None
            units[cell.column] = {"K": 1e3, "M": 1e6, "G": 1e9}[cell.unit]
    # tb:MNIST_sota has no FLOPs of its own; ours are shown beside it in M, as in tb:MNIST.
    return Table(units.get("flops", 1e6), units["params"], {name: Printed(**row) for name, row in rows.items()})


TABLES: dict[str, Table] = {key: _table(key) for key in dict.fromkeys(cell.table for cell in cells())}

SLIPS: dict[tuple[str, str, str], str] = {
    (cell.table, cell.row, cell.column): cell.note for cell in cells() if cell.column in COSTS and cell.note
}
"""(table, network, column): why the printed cell is not this network's (SPEC 6)."""


def printed(name: str) -> list[tuple[str, Printed]]:
    """Every table that has this network, with what it printed."""
    return [(key, table.rows[name]) for key, table in TABLES.items() if name in table.rows]


def agrees(value: int, text: str, unit: float) -> bool:
    """Whether a count, rounded as the paper rounds, is the printed cell."""
    digits = text.lstrip(">")
    decimals = len(digits.partition(".")[2])
    return f"{value / unit:.{decimals}f}" == digits


def slip_table() -> str:
    """The cells that are not their network's, as Markdown: a part of docs/costs.md."""
    lines = ["| table | network | column | printed | why |", "|---|---|---|---|---|"]
    for (table, name, column), why in SLIPS.items():
        lines.append(f"| `{table}` | `{name}` | {column} | {getattr(TABLES[table].rows[name], column)} | {why} |")
    return "\n".join(lines)
