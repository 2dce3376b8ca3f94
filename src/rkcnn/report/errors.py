"""The errors that the paper printed, as fractions."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from rkcnn.error import InputError
from rkcnn.report.cells import cells
from rkcnn.report.statistics import Sample

COLUMNS = ("mnist", "svhn", "cifar10", "cifar100")


class PrintedError(NamedTuple):
    """An error cell, printed as `lowest(mean±std)` over the authors' runs, each counted at its best epoch, as the
    public training code does (SPEC 5; the paper doesn't say).

    `lowest` is the number in front, or the only one: of a single run (`runs` 1) or of another paper (`quoted`).
    All numbers are None where the paper has none; `note` then says why, if the paper does.
    """

    printed: str
    lowest: float | None
    mean: float | None
    std: float | None
    runs: int | None
    quoted: str | None
    note: str | None


def printed_error(table: str, name: str, column: str) -> PrintedError | None:
    """The error of a network on a data set in one of the paper's tables; None if there is no such cell."""
    if column not in COLUMNS:
        raise InputError(f"no error column {column!r}; the paper's are {', '.join(COLUMNS)}")
    return _errors(table).get((name, column))


def sample_of(error: PrintedError | None) -> Sample | None:
    """The runs behind a cell, where it has mean, deviation and number.

    The paper doesn't say what its deviation divides by; four of its cells are impossible with n, so it is n - 1.
    """
    if error is None or error.mean is None or error.std is None or error.lowest is None or not error.runs:
        return None
    return Sample(error.mean, error.std, error.runs, error.lowest)


@cache
def _errors(table: str) -> dict[tuple[str, str], PrintedError]:
    return {
        (cell.row, cell.column): PrintedError(cell.printed, *_read(cell.printed), cell.runs, cell.quoted, cell.note)
        for cell in cells(table)
        if cell.column in COLUMNS
    }


def _read(printed: str) -> tuple[float | None, float | None, float | None]:
    numbers = [float(text) / 100 for text in re.findall(r"[\d.]+", printed)]  # none in - and N/A
    lowest, mean, std, *_ = (*numbers, None, None, None)
    return lowest, mean, std
