"""The paper's errors are numbers that could be what they say they are."""

from __future__ import annotations

from math import sqrt

import pytest

from rkcnn.error import InputError
from rkcnn.record.tables import TABLES
from rkcnn.report.cells import cells
from rkcnn.report.errors import COLUMNS, PrintedError, printed_error

FOUND = {
    (cell.table, cell.row, cell.column): printed_error(cell.table, cell.row, cell.column)
    for cell in cells()
    if cell.column in COLUMNS
}


def decimals(error: PrintedError) -> tuple[float, ...]:
    """Half of the last printed place of each number, as a fraction."""
    texts = error.printed.rstrip(")").replace("(", "±").split("±")
    return tuple(0.5 * 10.0 ** -(len(text.partition(".")[2]) + 2) for text in texts)


def test_a_cell_is_three_numbers_as_fractions() -> None:
    error = printed_error("tb:MNIST", "RKCNN-R-2@k=32", "mnist")
    assert error is not None
    assert error.printed == "0.28(0.308±0.024)"
    assert (error.lowest, error.mean, error.std) == pytest.approx((0.0028, 0.00308, 0.00024))
    assert (error.runs, error.quoted, error.note) == (5, None, None)
    assert printed_error("tb:MNIST", "RKCNN-R-2@k=33", "mnist") is None
    assert printed_error("tb:MNIST", "RKCNN-R-2@k=32", "svhn") is None


def test_every_mean_std_and_lowest_go_together() -> None:
    """With n values of mean m and sample std s none is further from m than s (n - 1) / sqrt(n) (SPEC 5)."""
    own = [error for error in FOUND.values() if error and error.mean is not None]
    assert len(own) == 17 + 3 * 14 + 3 + 3
    for error in own:
        assert error.lowest is not None
        assert error.mean is not None
        assert error.std is not None
        assert error.runs in (3, 5)
        first, second, third = decimals(error)
        assert error.lowest <= error.mean + first + second
        furthest = (error.std + third) * (error.runs - 1) / sqrt(error.runs)
        assert error.mean - error.lowest <= furthest + first + second, error


def test_what_has_no_number_is_said_as_the_paper_says_it() -> None:
    empty = {key: error for key, error in FOUND.items() if error and error.lowest is None}
    assert {error.printed for error in empty.values()} == {"-", "N/A"}
    absent = {(row, column): error.note for (_, row, column), error in empty.items() if error.printed == "N/A"}
    assert len(absent) == 7
    assert "memory" in (absent["RKNet-radau3@k=32", "mnist"] or "")
    assert "converge" in (absent["ODENet-abm@k=120_120_120", "cifar100"] or "")
    assert all(error.runs is None and error.quoted is None for error in empty.values())


def test_errors_of_others_are_marked_and_no_others_are() -> None:
    quoted = {row for (_, row, _), error in FOUND.items() if error and error.quoted}
    names = {row for table, row, _ in FOUND if table.endswith("_sota")}
    assert quoted == {row for row in names if not row.startswith("RKCNN")}
    for (table, row, _), error in FOUND.items():
        assert error is not None
        if error.lowest is not None and row in quoted:
            assert (error.mean, error.std, error.runs) == (None, None, None)
        elif error.lowest is not None:
            assert error.runs == (1 if error.mean is None else 5 if "MNIST" in table else 3)


def test_the_reasons_behind_quoted_numbers_add_up() -> None:
    """SPEC 6.3: ResNet's cells are mean - std, Momentum's 100 - (accuracy + std)."""
    for row, column, percent in (
        ("ResNet-1001", "cifar10", 4.69 - 0.20),
        ("ResNet-1001", "cifar100", 22.68 - 0.22),
        ("MomentumResNet-101", "cifar10", 100 - (95.18 + 0.06)),
        ("MomentumResNet-101", "cifar100", 100 - (76.38 + 0.42)),
    ):
        error = printed_error("tb:cifar_sota", row, column)
        assert error is not None
        assert error.lowest == pytest.approx(percent / 100)


def test_every_table_to_reproduce_has_its_place() -> None:
    for table in TABLES.values():
        for name in table.specs if table.paper else ():
            assert table.paper is not None
            error = printed_error(table.paper.label, name, table.data)
            assert (error is None) == name.startswith("Identity"), (table, name)


def test_a_column_that_is_no_data_set_is_a_sentence() -> None:
    with pytest.raises(InputError, match="mnist, svhn"):
        printed_error("tb:MNIST", "RKCNN-R-2@k=32", "params")
