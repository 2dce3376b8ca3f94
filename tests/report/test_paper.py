"""What paper.csv says the paper printed is what its LaTeX says, read here by another road."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import combinations_with_replacement
from math import sqrt
from pathlib import Path
from statistics import pstdev, stdev

import pytest

from rkcnn.data.sets import SETS
from rkcnn.error import InputError
from rkcnn.model.spec import parse
from rkcnn.record.tables import PAPER_TABLES, TABLES
from rkcnn.report.paper import (
    COST_TABLES,
    ERROR_COLUMNS,
    MISPRINTS,
    PrintedError,
    agrees,
    cells,
    printed_costs,
    printed_error,
    printed_sample,
)

SHARED = Path(os.environ.get("RKCNN_SHARED", Path(__file__).parents[3] / "shared"))
PAPER = SHARED / "paper" / "rkcnn-paper.tex"

NAMES = {label: table.specs for label, table in PAPER_TABLES.items()}
HEADS = {  # what stands above each column, in order
    "tb:MNIST": "Model,k,FLOPs M,Memory MiB,Params K,Error %",
    "tb:cifar": "Model,k_1,k_2,k_3,FLOPs G,Mem M,Params M,Error %,Error %,Params M,Error %",
    "tb:MNIST_sota": "Model,k,Params M,Error %",
    "tb:cifar_sota": "Model,k_1,k_2,k_3,FLOPs G,Params M,Error %,Error %,Params M,Error %",
}
COLUMNS = {
    "tb:MNIST": "flops memory params mnist",
    "tb:cifar": "flops memory params svhn cifar10 params_100 cifar100",
    "tb:MNIST_sota": "params mnist",
    "tb:cifar_sota": "flops params svhn cifar10 params_100 cifar100",
}


def plain(cell: str) -> str:
    """LaTeX without its marks of colour, weight and footnotes; mathematics has no spaces."""
    cell = re.sub(r"\\footnotemark\[\d+\]", "", cell)
    cell = re.sub(r"\\textcolor\{blue\}|\\mathbf|\\bf(?![a-z])", "", cell)
    cell = cell.replace(r"\textgreater", ">").replace(r"\pm", "±").replace(r"\%", "%").replace(r"\_", "_")
    return re.sub(r"[${}]|\\ ", "", cell).strip()


def latex(label: str) -> list[list[str]]:
    """The header and the rows of a table, as text."""
    whole = PAPER.read_text(encoding="utf-8")
    start = whole.index(rf"\label{{{label}}}")
    body = whole[start : whole.index(r"\botrule", start)]
    lines = re.sub(r"\\(top|mid)rule|\\cmidrule\{[\d-]+\}", "", body[body.index(r"\toprule") :]).split(r"\\")
    rows = [[plain(cell) for cell in line.split("&")] for line in lines if "&" in line]
    return rows[next(i for i, row in enumerate(rows) if row[0] == "Model") :]


@pytest.mark.skipif(not PAPER.exists(), reason="needs ../shared/paper/rkcnn-paper.tex")
@pytest.mark.parametrize("label", NAMES)
def test_every_cell_is_the_papers(label: str) -> None:
    head, *rows = latex(label)
    assert ",".join(re.sub(r" ?\((.+)\)", r" \1", cell) for cell in head) == HEADS[label]
    names = list(dict.fromkeys(cell.row for cell in cells(label)))
    widths = len([cell for cell in head if cell.startswith("k")])
    columns = COLUMNS[label].split()
    expected = {
        (name, column): text.replace(" ", "")
        for name, row in zip(names, rows, strict=True)
        for column, text in zip(columns, row[1 + widths :], strict=True)
    }
    assert {(cell.row, cell.column): cell.printed for cell in cells(label)} == expected
    for name, row in zip(names, rows, strict=True):
        if row[1] != "-":
            assert list(parse(name).k) == [int(text) for text in row[1 : 1 + widths]]


@pytest.mark.skipif(not PAPER.exists(), reason="needs ../shared/paper/rkcnn-paper.tex")
def test_reasons_and_runs_are_the_papers() -> None:
    whole = PAPER.read_text(encoding="utf-8")
    for cell in cells():
        if cell.printed == "N/A":
            assert cell.note is not None
            sentence = cell.note.removeprefix("the paper: ")
            assert f"{sentence[0].upper()}{sentence[1:]}." in whole
    for label, runs in (("tb:MNIST", "five"), ("tb:MNIST_sota", "five"), ("tb:cifar", "three")):
        caption = whole[: whole.index(rf"\label{{{label}}}")].rpartition(r"\caption")[2]
        assert f"lowest one over {runs} runs" in caption
        assert {cell.runs for cell in cells(label) if "±" in cell.printed} == {{"five": 5, "three": 3}[runs]}
    assert "lowest test errors of three runs with mean$\\pm$std for the best results of RKCNNs" in whole


@pytest.mark.parametrize("label", NAMES)
def test_rows_are_the_catalogues_in_its_order(label: str) -> None:
    rows = list(dict.fromkeys(cell.row for cell in cells(label)))
    assert rows == [name for name in NAMES[label] if not name.startswith("Identity")]
    assert len({(cell.row, cell.column) for cell in cells(label)}) == len(cells(label)), "a cell stands twice"
    assert len(cells(label)) == len(rows) * len(COLUMNS[label].split())


def test_units_are_the_headers() -> None:
    units = {(cell.table, cell.column): cell.unit for cell in cells()}
    assert units["tb:MNIST", "params"] == "K"
    assert units["tb:MNIST", "flops"] == "M"
    assert units["tb:cifar", "flops"] == units["tb:cifar_sota", "flops"] == "G"
    assert {unit for (table, column), unit in units.items() if column == "params" and table != "tb:MNIST"} == {"M"}
    assert {unit for (_, column), unit in units.items() if column == "memory"} == {"MiB"}
    assert {unit for (_, column), unit in units.items() if column in ("mnist", "svhn", "cifar10", "cifar100")} == {"%"}


def test_all_tables_or_one_and_no_other() -> None:
    assert cells() == tuple(cell for label in NAMES for cell in cells(label))
    with pytest.raises(InputError, match="tb:MNIST, tb:cifar"):
        cells("tb:fig")


FOUND = {
    (cell.table, cell.row, cell.column): printed_error(cell.table, cell.row, cell.column)
    for cell in cells()
    if cell.column in ERROR_COLUMNS
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
    """With n values of mean m and sample std s none is further from m than s (n - 1) / sqrt(n) (docs/spec.md, 5)."""
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
    """docs/spec.md, 6.3: ResNet's cells are mean - std, Momentum's 100 - (accuracy + std)."""
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


def samples(error: PrintedError, images: int) -> Iterator[list[int]]:
    """Every list of runs, each as its number of wrong images, whose lowest and mean error round to the printed ones."""
    assert error.lowest is not None
    assert error.mean is not None
    assert error.runs is not None
    first, second, _ = decimals(error)
    n, tiny = error.runs, 1e-9
    for least in range(int((error.lowest - first) * images), int((error.lowest + first) * images) + 2):
        if abs(least / images - error.lowest) > first + tiny:
            continue
        most = int(n * (error.mean + second) * images - (n - 1) * least) + 1  # the others are no lower than the lowest
        for others in combinations_with_replacement(range(least, most + 1), n - 1):
            if abs((least + sum(others)) / n / images - error.mean) <= second + tiny:
                yield [least, *others]


def test_three_deviations_are_impossible_when_they_divide_by_n_and_none_with_n_minus_1() -> None:
    """Errors are whole numbers of wrong test images, so few lists of runs have a printed lowest error and mean."""
    impossible: dict[str, set[str]] = {"n": set(), "n - 1": set()}
    for (_, _, column), error in FOUND.items():
        if printed_sample(error) is None or error is None or error.std is None:
            continue
        images, (_, _, third) = SETS[column].test.images, decimals(error)
        runs = list(samples(error, images))
        for divisor, deviation in (("n", pstdev), ("n - 1", stdev)):
            if not any(abs(deviation(wrong) / images - error.std) <= third + 1e-9 for wrong in runs):
                impossible[divisor].add(f"{column} {error.printed}")
    assert impossible["n"] == {"mnist 0.33(0.358±0.036)", "cifar10 4.71(4.79±0.14)", "cifar100 25.04(25.43±0.57)"}
    assert not impossible["n - 1"]


def clean(cell: str) -> str:
    cell = re.sub(r"\\footnotemark\[\d+\]|\\citep\{[^}]*\}|[${}]|\\ ", "", cell)
    return cell.replace(r"\textgreater", ">").replace(r"\_", "_").replace("\\", "").strip()


def latex_rows(label: str) -> list[dict[str, list[str]]]:
    """Column title -> cells (Params stand twice where there is CIFAR-100), an empty model filled from above."""
    body = PAPER.read_text().split(rf"\label{{{label}}}")[1].split(r"\botrule")[0]
    lines = [[clean(cell) for cell in line.split("&")] for line in body.splitlines() if line.count("&") > 2]
    start = next(i for i, line in enumerate(lines) if line[0] == "Model")
    heads = [re.split(r"[ (]", head)[0] for head in lines[start]]
    rows: list[dict[str, list[str]]] = []
    for line in lines[start + 1 :]:
        line[0] = line[0] or rows[-1]["Model"][0]
        rows.append({head: [cell for h, cell in zip(heads, line, strict=True) if h == head] for head in heads})
    return rows


@pytest.mark.shared("paper/rkcnn-paper.tex")
@pytest.mark.parametrize(
    ("label", "count"), [("tb:MNIST", 18), ("tb:cifar", 16), ("tb:MNIST_sota", 6), ("tb:cifar_sota", 15)]
)
def test_cells_are_the_papers(label: str, count: int) -> None:
    rows = latex_rows(label)
    assert len(rows) == count
    for (name, cell), row in zip(COST_TABLES[label].rows.items(), rows, strict=True):
        (model,), (flops,) = row["Model"], row.get("FLOPs", ["-"])
        params = [text if text != "-" else None for text in (*row["Params"], "-")]
        assert (cell.flops, cell.params, cell.params_100) == (flops if flops != "-" else None, *params[:2]), name
        assert cell.label == model or cell.label.startswith(f"{model} ("), name
        k = [int(text) for head, (text, *_) in row.items() if head.startswith("k") and text != "-"]
        assert not k or list(parse(name).k) == k, name
        assert not model.startswith("RKCNN") or name.startswith(f"{model}@"), name


@pytest.mark.parametrize(
    ("value", "text", "unit", "same"),
    [
        (52_938, "52.94", 1e3, True),
        (52_934, "52.94", 1e3, False),
        (19_485_024, ">19.49", 1e6, True),
        (84_544_920, "0.0845", 1e9, True),
        (10_327_706, "10.2", 1e6, False),
        (55_498, "55.50", 1e3, True),
    ],
)
def test_a_count_agrees_when_it_rounds_to_the_print(value: int, text: str, unit: float, same: bool) -> None:
    assert agrees(value, text, unit) is same


def test_every_misprint_is_a_printed_cell() -> None:
    for table, name, column in MISPRINTS:
        assert getattr(COST_TABLES[table].rows[name], column) is not None


def test_a_network_of_two_tables_has_two_rows() -> None:
    assert [table for table, _ in printed_costs("RKCNN-I-2@k=32")] == ["tb:MNIST", "tb:MNIST_sota"]
    assert printed_costs("RKCNN-I-2@k=33") == []
