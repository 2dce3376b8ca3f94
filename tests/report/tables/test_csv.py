"""A table for programs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from footprints import put_memories
from report.records import put_records, report_of
from rkcnn.record.tables import TABLES
from rkcnn.report.tables.csv import table_csv


def read(folder: Path, table: str = "mnist") -> dict[str, dict[str, str]]:
    text = table_csv(report_of(folder, table))
    return {line["network"]: line for line in csv.DictReader(text.splitlines())}


def test_numbers_alone(tmp_path: Path) -> None:
    put_records(tmp_path, params=52_234)
    rows = read(tmp_path)
    assert tuple(rows) == TABLES["mnist"].specs
    one = rows["ResNet@k=32"]
    assert (one["table"], one["preset"], one["recipe"]) == ("mnist", "paper", "paper-mnist")
    assert float(one["last_mean"]) == pytest.approx(0.402)
    assert float(one["best_min"]) == pytest.approx(0.36)
    assert (one["printed_mean"], one["printed_runs"], one["best_minus_printed"]) == ("0.3720", "5", "0.0100")
    assert (one["params_printed"], one["params"], one["params_check"]) == ("52.23 K", "52234", "agrees")
    assert (one["reference"], one["difference"], one["smallest_p"]) == ("RKCNN-R-2@k=32", "0.0495", "0.00794")
    assert float(one["low"]) < float(one["difference"]) < float(one["high"])
    assert (one["finished"], one["missing"], one["mcnemar_p"]) == ("5", "0", "")
    assert (one["seconds"], one["side_by_side"]) == ("65.4", "1")


def test_an_absent_number_is_an_empty_cell(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKNet-radau3@k=32": (None,)})
    rows = read(tmp_path)
    assert (rows["RKNet-radau3@k=32"]["diverged"], rows["RKNet-radau3@k=32"]["error_printed"]) == ("1", "N/A")
    one = rows["ResNet@k=32"]
    assert {one[name] for name in ("params", "last_mean", "difference", "seconds", "best_minus_printed")} == {""}
    assert one["missing"] == "5"


def test_smoke_says_so_on_every_line_and_has_no_difference(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3,)}, preset="smoke")
    rows = read(tmp_path)
    assert {row["preset"] for row in rows.values()} == {"smoke"}
    assert rows["ResNet@k=32"]["last_minus_printed"] == ""


def test_memory_in_mib(tmp_path: Path) -> None:
    put_records(tmp_path)
    put_memories(tmp_path, {"Identity@k=32": 612, "ResNet@k=32": 620})
    rows = read(tmp_path)
    columns = [name for name in rows["ResNet@k=32"] if name.startswith("memory_")]
    assert columns == [f"memory_{name}" for name in ("printed", "driver", "above", "reserved", "allocated")]
    assert [rows["ResNet@k=32"][name] for name in columns] == ["767", "620", "8", "2", "0.75"]
    assert [rows["RKNet-radau3@k=32"][name] for name in columns] == [""] * 5  # the paper's is a dash
