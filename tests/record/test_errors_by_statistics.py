"""Records of what a run errs with other running statistics of its norms."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from measured_norms import measured
from outcome import outcome
from rkcnn.error import InputError
from rkcnn.record.errors_by_statistics import find_errors_by_statistics, read_errors_by_statistics

NAME = "errors-by-statistics.json"
RESULT = outcome((0.2,))


def test_written_and_read(tmp_path: Path) -> None:
    assert read_errors_by_statistics(tmp_path, RESULT) is None
    (tmp_path / NAME).write_bytes(measured(RESULT, each=61).to_json())
    found = read_errors_by_statistics(tmp_path, RESULT)
    assert found == measured(RESULT, each=61)
    assert found.error("each") == pytest.approx(0.061)


@pytest.mark.parametrize(
    "change",
    [
        {"images": 59},
        {"images": 0},
        {"batches": 0},
        {"wrong": {"each": 60}},
        {"more": 1},
        {"schema": 2},
        {"variances": {"norm": [True]}},
        {"variances": {"norm": 1}},
        {"run": {}},
        {"run": {**RESULT.run.as_dict(), "seed": False}},
    ],
)
def test_a_damaged_record_is_named_and_left_out(tmp_path: Path, change: dict[str, Any]) -> None:
    facts = json.loads(measured(RESULT).to_json())
    (tmp_path / NAME).write_text(json.dumps({**facts, **change}))
    with pytest.raises(InputError, match=r"errors-by-statistics.json can't be read .*; remove it and measure again"):
        read_errors_by_statistics(tmp_path, RESULT)
    found, unreadable = find_errors_by_statistics([(tmp_path, RESULT)])
    assert (found, len(unreadable)) == ([], 1)


def test_a_link_that_leads_nowhere_is_not_the_absence_of_a_record(tmp_path: Path) -> None:
    (tmp_path / NAME).symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=NAME):
        read_errors_by_statistics(tmp_path, RESULT)


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (replace(RESULT, run=replace(RESULT.run, seed=1)), "another run"),
        (replace(RESULT, error=0.21), "error of 0.2000, and the result 0.21, so it is of other weights"),
        (replace(RESULT, data={"held_out_images": 2000}), "1,000 images, and the result 2,000"),
    ],
)
def test_it_must_fit_the_result_beside_it(tmp_path: Path, result: Any, says: str) -> None:
    (tmp_path / NAME).write_bytes(measured(RESULT).to_json())
    with pytest.raises(InputError, match=says):
        read_errors_by_statistics(tmp_path, result)


def test_numbers_that_no_reader_takes_are_not_written() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        replace(measured(RESULT), variances={"norm": [float("nan")]}).to_json()
