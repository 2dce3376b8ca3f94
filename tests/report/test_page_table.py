"""The page's table: what each row says, and what it is sorted by."""

from __future__ import annotations

from pathlib import Path

import pytest

from footprints import put_memories
from report.records import ERRORS, put_records
from rkcnn.record.table import TABLES
from rkcnn.report.compare import compare
from rkcnn.report.page_table import HEADS, MEMORY, Line, list_heads, list_lines
from rkcnn.report.view import view

CONCLUDED = HEADS.index("what can be concluded") - 1  # the network's name is no cell
PARAMS = HEADS.index("params") - 1


def lines(folder: Path, pace: str | None = None) -> dict[str, Line]:
    seen = view(TABLES["mnist"], folder, pace)
    return {line.spec: line for line in list_lines(seen, compare(seen))}


def test_a_line_a_row_and_a_cell_a_head(tmp_path: Path) -> None:
    put_records(tmp_path, flops=8_434_000)
    found = lines(tmp_path)
    assert tuple(found) == TABLES["mnist"].specs
    assert {len(line.cells) + 1 for line in found.values()} == {len(HEADS)}
    one = found["ResNet@k=32"]
    texts = [cell.text.replace("\u00a0", " ") for cell in one.cells]
    assert texts[1:] == [
        "0.402±0.019", "5", "+0.050 [+0.015, +0.084]", "0.33(0.372±0.031)", "0.36(0.382±0.019)", "+0.010", "+0.030",
        "52.23 K", "8.43 M",
    ]  # fmt: skip
    assert one.cells[1].value == pytest.approx(0.00402)
    assert dict(one.facts) == {
        "error, last epoch": "0.402 ± 0.019 %",
        "error, best epoch": "0.382 ± 0.019 %",
        "parameters": "1,234",
        "FLOPs": "8.43 M an image",
        "training": "65 s a run",
        "seeds": "0, 1, 2, 3, 4",
    }


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
    assert dict(lines(tmp_path)["ResNet@k=32"].facts)["training"] == says


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("ResNet-bottleneck@k=32", "errs more (p"),
        ("RKCNN-I-2@k=32", "not separable with 5 and 4 seeds (p"),
        ("RKCNN-R-2@k=32", "the reference"),
        ("Identity@k=32", "nothing from one run"),
        ("ODENet-ab@k=32", "diverged"),
        ("DenseNet-2@k=32", "not run yet"),
        ("CliqueNet-2@k=32", "nothing: 3 of 5 runs diverged"),
    ],
)
def test_what_can_be_concluded(tmp_path: Path, spec: str, says: str) -> None:
    lucky = {"CliqueNet-2@k=32": (0.0031, 0.0032, None, None, None)}
    put_records(tmp_path, {**ERRORS, **lucky, "Identity@k=32": (0.01,), "ODENet-ab@k=32": (None,)})
    assert lines(tmp_path)[spec].cells[CONCLUDED].text.startswith(says)


def test_smoke_concludes_nothing(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3,), "RKCNN-R-2@k=32": (0.4,)}, pace="smoke")
    texts = {line.cells[CONCLUDED].text for line in lines(tmp_path).values()}
    assert texts == {"nothing: smoke", "not run yet"}


def test_without_the_reference_nothing_is_compared(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.003, 0.004)})
    assert lines(tmp_path)["ResNet@k=32"].cells[CONCLUDED].text == "nothing: the reference lacks runs, or some diverged"


def test_costs_are_sorted_as_numbers_whoever_counted_them(tmp_path: Path) -> None:
    found = lines(tmp_path)
    assert found["ResNet@k=32"].cells[PARAMS].value == pytest.approx(52_230)
    assert found["ODENet-abm@k=32"].cells[PARAMS + 1].value == pytest.approx(19.49e6), "printed as >19.49"
    assert found["Identity@k=32"].cells[PARAMS].value is None
    assert not any(line.done for line in found.values())


def test_memory_stands_last_where_it_was_measured(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert list_heads(view(TABLES["mnist"], tmp_path)) == HEADS
    put_memories(tmp_path, {"Identity@k=32": 612, "ResNet@k=32": 620})
    heads = list_heads(view(TABLES["mnist"], tmp_path))
    assert heads[len(HEADS) :] == MEMORY
    found = lines(tmp_path)
    assert {len(line.cells) + 1 for line in found.values()} == {len(heads)}
    assert [(cell.text, cell.value) for cell in found["ResNet@k=32"].cells[-5:]] == [
        ("767", 767), ("620", 620), ("+8", 8), ("2", 2), ("0.75", 0.75),
    ]  # fmt: skip
    assert [cell.value for cell in found["RKNN-rk4_38@k=32"].cells[-5:]] == [767, None, None, None, None]
