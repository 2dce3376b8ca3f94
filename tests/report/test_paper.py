"""What we say the paper printed is what its LaTeX says."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rkcnn.model.spec import parse
from rkcnn.report.paper import SLIPS, TABLES, agrees, printed

SHARED = Path(os.environ.get("RKCNN_SHARED", Path(__file__).parents[3] / "shared"))
PAPER = SHARED / "paper" / "rkcnn-paper.tex"


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
    for (name, cell), row in zip(TABLES[label].rows.items(), rows, strict=True):
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


def test_every_slip_is_a_printed_cell() -> None:
    for table, name, column in SLIPS:
        assert getattr(TABLES[table].rows[name], column) is not None


def test_a_network_of_two_tables_has_two_rows() -> None:
    assert [table for table, _ in printed("RKCNN-I-2@k=32")] == ["tb:MNIST", "tb:MNIST_sota"]
    assert printed("RKCNN-I-2@k=33") == []
