"""The page's table: what each row says, and what it is sorted by."""

from __future__ import annotations

from pathlib import Path

import pytest

from footprints import put_memories
from report.records import ERRORS, put_records, report_of, results_of
from rkcnn.record.tables import TABLES
from rkcnn.report.costs import MEMORY_HEADS
from rkcnn.report.page.table import Grid, PageLine, lay_out, lay_out_memory, list_facts

REFERENCE = "against RKCNN-R-2 k=32"


def grid(folder: Path, preset: str | None = None, table: str = "mnist") -> Grid:
    return lay_out(report_of(folder, table, preset))


def heads(found: Grid) -> list[str]:
    return [head.text for head in found.heads]


def lines(folder: Path, preset: str | None = None) -> dict[str, PageLine]:
    return {line.network: line for line in grid(folder, preset).lines}


def column(found: Grid, head: str) -> dict[str, str]:
    """By network; its name is no cell."""
    at = heads(found).index(head) - 1
    return {line.network: line.cells[at].text.replace("\u00a0", " ") for line in found.lines}


def test_a_line_a_row_and_a_cell_a_head(tmp_path: Path) -> None:
    put_records(tmp_path, flops=8_434_000)
    found = lines(tmp_path)
    assert tuple(found) == TABLES["mnist"].specs
    assert heads(grid(tmp_path)) == [
        "network", REFERENCE, "difference [95\u00a0%]", "ours, last epoch", "n", "paper",
        "ours, best epoch (chosen on the test set)", "Δ best", "Δ last", "params", "FLOPs (paper’s rule)",
    ]  # fmt: skip
    assert {len(line.cells) for line in found.values()} == {10}
    one = found["ResNet@k=32"]
    texts = [cell.text.replace("\u00a0", " ") for cell in one.cells]
    assert texts[1:] == [
        "+0.050 [+0.015, +0.084]", "0.402±0.019", "5", "0.33 (0.372±0.031)", "0.36 (0.382±0.019)", "+0.010", "+0.030",
        "1,234", "8.43 M",
    ]  # fmt: skip
    assert one.cells[2].value == pytest.approx(0.00402)
    assert one.cells[8].below.replace("\u00a0", " ") == "differs: paper 52.23 K"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("ResNet-bottleneck@k=32", "errs more (corrected p"),
        ("RKCNN-I-2@k=32", "not separable with 5 and 4 seeds (corrected p"),
        ("RKCNN-R-2@k=32", "the reference"),
        ("Identity@k=32", "not compared: a single run"),
        ("ODENet-ab@k=32", "diverged"),
        ("DenseNet-2@k=32", "not run yet"),
        ("CliqueNet-2@k=32", "not compared: 3 of 5 runs diverged"),
    ],
)
def test_what_can_be_concluded(tmp_path: Path, spec: str, says: str) -> None:
    lucky = {"CliqueNet-2@k=32": (0.0031, 0.0032, None, None, None)}
    put_records(tmp_path, {**ERRORS, **lucky, "Identity@k=32": (0.01,), "ODENet-ab@k=32": (None,)})
    found = grid(tmp_path)
    assert column(found, REFERENCE)[spec].startswith(says)
    assert [line.network for line in found.lines if line.is_reference] == ["RKCNN-R-2@k=32"]


@pytest.mark.parametrize("preset", ["paper", "smoke"])
def test_where_nothing_is_compared_there_is_no_reference(tmp_path: Path, preset: str) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3, 0.31), "RKCNN-R-2@k=32": (0.4,)}, preset=preset)
    found = grid(tmp_path)
    assert not [head for head in heads(found) if head.startswith(("against", "difference"))]
    assert not any(line.is_reference for line in found.lines)


def test_other_recipes_have_no_differences_from_the_paper(tmp_path: Path) -> None:
    put_records(tmp_path, preset="fast")
    found = heads(grid(tmp_path))
    assert "paper" in found
    assert not [head for head in found if "Δ" in head]


def test_of_several_references_each_row_names_its_own(tmp_path: Path) -> None:
    specs = ("RKCNN-R-2@k=32,norm=bn", "RKCNN-R-2@k=32,norm=gn", "ResNet@k=32", "ResNet@k=32,norm=bn")
    put_records(tmp_path, {spec: (0.003 + 0.002 * i, 0.0031 + 0.002 * i) for i, spec in enumerate(specs)}, "norms")
    found = column(grid(tmp_path, table="norms"), "against the reference")
    assert found["ResNet@k=32,norm=bn"].startswith("errs more than RKCNN-R-2@k=32,norm=bn (corrected p")
    assert found["ResNet@k=32"].startswith("errs more than RKCNN-R-2@k=32,norm=gn (corrected p")
    assert found["RKCNN-R-2@k=32,norm=bn"] == "the reference"


def test_costs_are_sorted_as_numbers_whoever_counted_them(tmp_path: Path) -> None:
    found = lines(tmp_path)
    assert found["ResNet@k=32"].cells[-2].value == pytest.approx(52_230)
    assert found["ODENet-abm@k=32"].cells[-1].value == pytest.approx(19.49e6), "printed as >19.49"
    assert found["Identity@k=32"].cells[-2].value is None
    assert not any(line.done for line in found.values())


def test_memory_is_a_table_of_its_own(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert lay_out_memory(report_of(tmp_path)) is None
    put_memories(tmp_path, {"Identity@k=32": 612, "ResNet@k=32": 620})
    found = lay_out_memory(report_of(tmp_path))
    assert found
    assert heads(found) == ["network", *MEMORY_HEADS]
    cells = {line.network: line.cells for line in found.lines}
    assert [(cell.text, cell.value) for cell in cells["ResNet@k=32"]] == [
        ("767", 767), ("620", 620), ("+8", 8), ("2", 2), ("0.75", 0.75),
    ]  # fmt: skip
    assert [cell.value for cell in cells["RKNN-rk4_38@k=32"]] == [767, None, None, None, None]


def facts(folder: Path, spec: str = "ResNet@k=32") -> dict[str, str]:
    return dict(list_facts(next(row for row in results_of(folder).rows if row.network == spec), 3))


def test_errors_costs_and_seeds(tmp_path: Path) -> None:
    put_records(tmp_path, flops=8_434_000)
    assert facts(tmp_path) == {
        "name": "ResNet@k=32",
        "error, last epoch": "0.402 ± 0.019 %",
        "error, best epoch": "0.382 ± 0.019 %",
        "error in the paper": "0.33(0.372±0.031)",
        "parameters": "1,234",
        "FLOPs (2 × MAC)": "8.43 M an image",
        "training": "65 s a run",
        "seeds": "0, 1, 2, 3, 4",
    }


def test_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    put_records(tmp_path, {"Identity@k=32": (0.004, None)})
    found = facts(tmp_path, "Identity@k=32")
    assert found["diverged"] == "seed 1"
    assert found["error, last epoch"] == "0.400 %"
    assert not {"name", "FLOPs (2 × MAC)"} & set(found), "its label is its name"
    assert facts(tmp_path) == {"name": "ResNet@k=32", "error in the paper": "0.33(0.372±0.031)"}


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        ({"together": 1}, "65 s a run"),
        ({"together": 10}, "65 s for up to 10 runs side by side"),
        ({}, "65 s, others may have run beside it"),
    ],
)
def test_a_time_says_how_runs_were_packed(tmp_path: Path, machine: dict[str, int], says: str) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,)}, machine=machine)
    assert facts(tmp_path)["training"] == says


def test_a_note_in_the_records_is_shown_on_their_error(tmp_path: Path) -> None:
    put_records(tmp_path, {"CliqueNet-2@k=32": (0.004, 0.005)}, notes=("Trained before a correction.",))
    cells = lines(tmp_path)["CliqueNet-2@k=32"].cells
    assert [cell.note for cell in cells if cell.text == "0.450±0.071"] == ["Trained before a correction."]
