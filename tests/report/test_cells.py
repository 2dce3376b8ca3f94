"""paper.csv holds what the paper's LaTeX prints: every cell, read here by another road."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rkcnn.error import InputError
from rkcnn.model.spec import parse
from rkcnn.record.tables import PAPER_TABLES
from rkcnn.report.cells import cells

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


@pytest.mark.shared("paper/rkcnn-paper.tex")
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


@pytest.mark.shared("paper/rkcnn-paper.tex")
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
