"""A table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from footprints import put_memories, taken
from report.records import put_records, report_of
from rkcnn.record.memory import Memory
from rkcnn.record.tables import TABLES
from rkcnn.report.claims.judge import judge_claims
from rkcnn.report.report import build_report
from rkcnn.report.results import build_result_table, read_records
from rkcnn.report.tables.text import WIDTH, align, claims_text, memory_text, table_text


def test_every_row_stands_in_both_blocks(tmp_path: Path) -> None:
    put_records(tmp_path)
    text = table_text(report_of(tmp_path))
    lines = text.splitlines()
    assert lines[0] == f"mnist: {TABLES['mnist'].about}; paper-mnist in fp32, 24 of 95 runs"
    assert lines[2] == "Errors in percent; best is each run's best epoch, chosen on the test set"
    assert lines[3].split() == ["network", "paper", "last", "n", "best", "Δ", "last", "Δ", "best"]
    assert (
        "pre-act ResNet                0.33(0.372±0.031)  0.402±0.019    5  0.36(0.382±0.019)  +0.030  +0.010" in lines
    )
    assert (
        "RKNN (4th-order ERK)          0.35(0.378±0.024)  not run yet  0/5                  -       -       -" in lines
    )
    assert sum(line.startswith("RKCNN-I-2 k=32 ") for line in lines) == 2  # errors and costs
    assert "RKCNN-I-2 k=32 and RKCNN-R-2 k=32 are not separable with 5 and 4 seeds" in " ".join(text.split())


def test_a_table_of_our_own_has_no_columns_of_theirs(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=80": (0.05, 0.06)}, "scaling")
    lines = table_text(report_of(tmp_path, "scaling")).splitlines()
    assert lines[3].split() == ["network", "last", "n", "best"]
    assert lines[4].split() == ["RKCNN-I-2_2_2@k=80", "5.50±0.71", "2/3", "4.98(5.48±0.71)"]
    start = lines.index("Costs, as the records counted them (FLOPs of one image, by the paper's rule)")
    assert lines[start + 1].split() == ["network", "params"]  # of before FLOPs were counted


@pytest.mark.parametrize("preset", ["paper", "fast"])
@pytest.mark.parametrize("table", list(TABLES))
def test_a_whole_table_fits_the_terminal(tmp_path: Path, table: str, preset: str) -> None:
    data, seeds = TABLES[table].data, TABLES[table].seeds
    errors = {"mnist": (0.0031, 0.0044, 0.0039, 0.0035, 0.0040), "cifar100": (0.201, 0.189, 0.195)}
    values = errors.get(data, (0.041, 0.049, 0.045))[:seeds]
    errors_of = dict.fromkeys(TABLES[table].specs, values)
    put_records(tmp_path, errors_of, table, preset, params=39_000_000, paper_flops=14_790_000_000)
    text = table_text(report_of(tmp_path, table))
    longest = max(map(len, text.splitlines()))
    allowed = 0
    if table.startswith("sota-") and preset == "fast":
        allowed = 2  # the longest name, behind FAST, and two misprints meet
    if (table, preset) == ("sota-cifar100", "paper"):
        allowed = 5  # the longest name and the widest errors meet
    assert longest <= WIDTH + allowed


@pytest.mark.parametrize("preset", ["fast", "smoke"])
def test_another_recipe_is_marked_on_every_row(tmp_path: Path, preset: str) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.01,)}, preset=preset)
    text = table_text(report_of(tmp_path))
    lines = text.splitlines()
    assert lines[1].startswith(f"{preset.upper()}: ")
    assert sum(line.startswith(f"{preset.upper()} ") for line in lines) == 2 * len(TABLES["mnist"].specs)
    assert f"Comparisons ({preset.upper()})" in lines


def test_equal_records_give_equal_texts(tmp_path: Path) -> None:
    for name in ("a", "b"):
        put_records(tmp_path / name)
    one, two = (table_text(report_of(tmp_path / name)) for name in ("a", "b"))
    assert one == two


def test_claims_have_a_heading_of_their_recipe(tmp_path: Path) -> None:
    put_records(tmp_path, preset="fast")
    judged = judge_claims(read_records(tmp_path)[0], "fast")
    text = claims_text(judged, "fast")
    assert text.startswith("The paper's claims (FAST: not the paper's recipe)\n- Each claim is judged")
    assert claims_text([], "paper") == ""


def test_memory_has_a_block_where_it_was_measured(tmp_path: Path) -> None:
    put_records(tmp_path)
    without = table_text(report_of(tmp_path))
    assert "Memory" not in without
    put_memories(tmp_path, {"Identity@k=32": 612, "ResNet@k=32": 620})
    lines = table_text(report_of(tmp_path)).splitlines()
    start = lines.index("Memory: the paper's, and ours of a fresh process that infers one image (MiB)")
    assert lines[start + 1].split() == ["network", "paper", "driver", "−", "Identity", "reserved", "allocated"]
    assert "pre-act ResNet                  767     620          +8         2       0.75" in lines
    assert "RKNN (4th-order ERK)            767       -           -         -          -" in lines
    assert max(map(len, lines)) <= WIDTH


def test_identity_has_a_line_where_it_is_no_row() -> None:
    table = TABLES["sota-mnist"]
    assert memory_of(table.name) == ""
    memories = [taken("Identity@k=32", 612), taken("RKNet-64", 640)]
    lines = memory_of(table.name, memories=memories).splitlines()
    assert lines[0] == "Memory of a fresh process that infers one image (MiB)"
    assert lines[1].split() == ["network", "driver", "−", "Identity", "reserved", "allocated"]  # the paper has none
    assert lines[2].endswith("640         +28         2       0.75")
    assert lines[-1].split() == ["Identity@k=32", "612", "+0", "2", "0.75"]


def test_another_recipe_is_marked_here_too() -> None:
    lines = memory_of("mnist", "smoke", [taken("Identity@k=32")]).splitlines()
    assert all(line.startswith("SMOKE ") for line in lines[2:])


def memory_of(table: str, preset: str | None = None, memories: Sequence[Memory] = ()) -> str:
    return memory_text(build_report([build_result_table(TABLES[table], (), preset, memories)]).tables[0])


def test_words_left_numbers_right_and_nothing_left_out() -> None:
    rows = (("name", "a", "empty", "says"), ("x", "1", "-", "yes"), ("longer", "100", "", ""))
    assert list(align(rows, words=(0, 3))) == ["name      a  says", "x         1  yes ", "longer  100      "]
