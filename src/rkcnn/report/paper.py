"""Every number that the paper printed, read from paper.csv: errors, parameters, FLOPs and memory of its four tables."""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from rkcnn.error import InputError
from rkcnn.model.families import ORIGINALS, title_of
from rkcnn.record.tables import Table
from rkcnn.report.statistics import Sample

ERROR_COLUMNS = ("mnist", "svhn", "cifar10", "cifar100")
COST_COLUMNS = ("params", "params_100", "flops")
OWN_REFERENCES = {"ablation": "RKCNN-I-2_2_2@k=120", "scaling": "RKCNN-I-2_2_2@k=80"}
CHOICES_OF_REFERENCE = {"norms": "the one with the same norm", "statistics": "the same network with shared statistics"}
"""How the reference of a row is chosen in those of our tables that have several."""
UNITS = {"K": 1e3, "M": 1e6, "G": 1e9}


class PaperCell(NamedTuple):
    """One line of paper.csv; `printed` is the text in the paper, `-` and `N/A` included.

    k has no cells here, because it is part of the network's name. `note` explains why a cost is not this network's
    (docs/spec.md, 6), or how an error was obtained. `runs` is the number of the authors' own runs behind an error;
    `quoted` is the publication from which another number was taken.
    """

    table: str  # the label in the paper's LaTeX
    row: str  # our name of the network
    label: str  # the paper's name of it
    column: str  # params, params_100 (those with 100 classes), flops, memory; or a data set, for the error on it
    unit: str
    printed: str
    runs: int | None
    quoted: str | None
    note: str | None


class PrintedError(NamedTuple):
    """An error that the paper printed as `lowest(mean±std)` over its runs, as fractions.

    `lowest` is the number in front, or the only one: that of a single run (`runs` is 1) or of another publication
    (`quoted`). All three are None where the paper has no number; `note` then gives its reason, if it has one.
    """

    printed: str
    lowest: float | None
    mean: float | None
    std: float | None
    runs: int | None
    quoted: str | None
    note: str | None


class PrintedCosts(NamedTuple):
    """The cost cells of one row, digit for digit; `params_100` is the column for CIFAR-100."""

    label: str
    flops: str | None
    params: str
    params_100: str | None = None


class CostTable(NamedTuple):
    """The cost columns of one of the paper's tables."""

    flops_unit: float
    params_unit: float
    rows: dict[str, PrintedCosts]  # by the network's name

    @property
    def letters(self) -> tuple[str, str]:
        """The units of parameters and of FLOPs as the paper writes them: K, M or G."""
        letters = {unit: letter for letter, unit in UNITS.items()}
        return letters[self.params_unit], letters[self.flops_unit]


def cells(table: str | None = None) -> tuple[PaperCell, ...]:
    """Return all cells of one of the paper's tables, or of all four, row by row."""
    tables = _read_cells()
    if table is None:
        return tuple(cell for rows in tables.values() for cell in rows)
    if table not in tables:
        raise InputError(f"the paper has no table {table!r}; its tables are {', '.join(tables)}")
    return tables[table]


def printed_error(table: str, name: str, column: str) -> PrintedError | None:
    """Return the error of a network on a data set in one of the paper's tables, or None if there is no such cell."""
    if column not in ERROR_COLUMNS:
        raise InputError(f"no error column {column!r}; the paper's are {', '.join(ERROR_COLUMNS)}")
    return _read_errors(table).get((name, column))


def printed_sample(error: PrintedError | None) -> Sample | None:
    """Return mean, standard deviation and number of the runs behind a cell, where the paper prints all three.

    The paper doesn't say whether its deviation divides by n or by n - 1. Three of its cells can't be reached by any
    errors of whole test images when it divides by n; with n - 1 all can, so we take n - 1.
    """
    if error is None or error.mean is None or error.std is None or error.lowest is None or not error.runs:
        return None
    return Sample(error.mean, error.std, error.runs, error.lowest)


def printed_memory(table: str, name: str) -> float | None:
    """Return the memory of a network in MiB as the paper prints it, or None."""
    found = [cell.printed for cell in cells(table) if (cell.row, cell.column) == (name, "memory")]
    return float(found[0]) if found and found[0] != "-" else None


def printed_costs(name: str) -> list[tuple[str, PrintedCosts]]:
    """Return every table of the paper that has this network, with the costs that it prints."""
    return [(key, table.rows[name]) for key, table in COST_TABLES.items() if name in table.rows]


def agrees(value: int, text: str, unit: float) -> bool:
    """Whether a count, rounded to the printed number of digits, is the printed cell."""
    digits = text.lstrip(">")
    decimals = len(digits.partition(".")[2])
    return f"{value / unit:.{decimals}f}" == digits


@cache
def _read_cells() -> dict[str, tuple[PaperCell, ...]]:
    text = files("rkcnn.report").joinpath("paper.csv").read_text(encoding="utf-8")
    found: dict[str, list[PaperCell]] = {}
    for line in csv.DictReader(text.splitlines()):
        cell = PaperCell(
            **{name: line[name] for name in ("table", "row", "label", "column", "unit", "printed")},
            runs=int(line["runs"]) if line["runs"] else None,
            quoted=line["quoted"] or None,
            note=line["note"] or None,
        )
        found.setdefault(cell.table, []).append(cell)
    return {table: tuple(rows) for table, rows in found.items()}


@cache
def _read_errors(table: str) -> dict[tuple[str, str], PrintedError]:
    return {
        (cell.row, cell.column): PrintedError(cell.printed, *_split(cell.printed), cell.runs, cell.quoted, cell.note)
        for cell in cells(table)
        if cell.column in ERROR_COLUMNS
    }


def _split(printed: str) -> tuple[float | None, float | None, float | None]:
    """Return the lowest error, the mean and the deviation of 0.33(0.372±0.031) as fractions; - and N/A have none."""
    numbers = [float(text) / 100 for text in re.findall(r"[\d.]+", printed)]
    lowest, mean, std, *_ = (*numbers, None, None, None)
    return lowest, mean, std


def _cost_table(key: str) -> CostTable:
    rows: dict[str, dict[str, Any]] = {}
    units: dict[str, float] = {}
    for cell in cells(key):
        row = rows.setdefault(cell.row, {"label": cell.label, "flops": None})
        if cell.column in COST_COLUMNS:
            row[cell.column] = cell.printed if cell.printed != "-" else None
            units[cell.column] = UNITS[cell.unit]
    # tb:MNIST_sota prints no FLOPs; ours are shown beside it in M, as in tb:MNIST.
    return CostTable(
        units.get("flops", 1e6), units["params"], {name: PrintedCosts(**row) for name, row in rows.items()}
    )


COST_TABLES: dict[str, CostTable] = {key: _cost_table(key) for key in _read_cells()}
"""The cost columns of the paper's tables, by the label in its LaTeX."""

MISPRINTS: dict[tuple[str, str, str], str] = {
    (cell.table, cell.row, cell.column): cell.note for cell in cells() if cell.column in COST_COLUMNS and cell.note
}
"""(table, network, column): why the printed cell is not this network's (docs/spec.md, 6)."""


def label_of(place: str, spec: str) -> str:
    """Return the paper's name of a row, with the width where several rows share it; or the network's own."""
    labels = {cell.row: cell.label for cell in cells(place)}
    label, width = labels.get(spec, spec), spec.partition("@")[2]
    if list(labels.values()).count(label) < 2:
        return label
    return f"{label} {width}" if width else spec


def family_of(spec: str) -> str:
    """Return the family as the paper writes it: RKCNN-I of RKCNN-I-2@k=32, RK-Net of RKNet-rk4_38@k=32."""
    return title_of(ORIGINALS[spec].family if spec in ORIGINALS else spec)


def reference_of(table: Table, spec: str) -> str:
    """Return what a row is compared with: the RKCNN of the lowest error in the paper, so that our errors don't choose.

    In the norms table it is the RKCNN-R with the row's norm, in the statistics table the same network with shared
    ones, and in our other tables the network that they start from.
    """
    if table.name in OWN_REFERENCES:
        return OWN_REFERENCES[table.name]
    if table.name == "norms":
        norm = "bn" if "norm=bn" in spec else "gn"
        return next(name for name in table.specs if name.startswith("RKCNN-R-") and name.endswith(f"norm={norm}"))
    if table.name == "statistics":
        return spec.removesuffix(",statistics=each")
    assert table.paper is not None
    label = table.paper.label
    printed = ((printed_error(label, name, table.data), name) for name in table.specs if name.startswith("RKCNN-"))
    return min((cell.lowest, name) for cell, name in printed if cell and cell.lowest is not None)[1]
