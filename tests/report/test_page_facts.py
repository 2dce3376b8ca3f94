"""What the page tells of a row."""

from __future__ import annotations

from pathlib import Path

import pytest

from report.records import put_records
from rkcnn.record.tables import TABLES
from rkcnn.report.page_facts import list_facts
from rkcnn.report.view import view


def facts(folder: Path, spec: str = "ResNet@k=32") -> dict[str, str]:
    return dict(list_facts(next(row for row in view(TABLES["mnist"], folder).rows if row.spec == spec), 3))


def test_errors_costs_and_seeds(tmp_path: Path) -> None:
    put_records(tmp_path, flops=8_434_000)
    assert facts(tmp_path) == {
        "name": "ResNet@k=32",
        "error, last epoch": "0.402 ± 0.019 %",
        "error, best epoch": "0.382 ± 0.019 %",
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
    assert facts(tmp_path) == {"name": "ResNet@k=32"}


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
