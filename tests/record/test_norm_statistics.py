"""Records of what a run errs with other running statistics of its norms."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from norm_records import measured
from outcome import outcome
from rkcnn.error import InputError
from rkcnn.record.norm_statistics import find_norm_statistics, read_norm_statistics

NAME = "norm-statistics.json"


def test_written_and_read(tmp_path: Path) -> None:
    result = outcome((0.2,))
    assert read_norm_statistics(tmp_path, result.run) is None
    (tmp_path / NAME).write_bytes(measured(result.run, each=61).to_json())
    found = read_norm_statistics(tmp_path, result.run)
    assert found == measured(result.run, each=61)
    assert found.error("each") == pytest.approx(0.061)


@pytest.mark.parametrize(
    "change",
    [
        {"images": 59},
        {"wrong": {"each": 60}},
        {"images": 0},
        {"more": 1},
        {"schema": 2},
        {"variances": {"norm": [True]}},
    ],
)
def test_a_damaged_record_is_named_and_left_out(tmp_path: Path, change: dict[str, object]) -> None:
    result = outcome((0.2,))
    facts = json.loads(measured(result.run).to_json())
    (tmp_path / NAME).write_text(json.dumps({**facts, **change}))
    with pytest.raises(InputError, match=r"norm-statistics.json can't be read .*; remove it and measure again"):
        read_norm_statistics(tmp_path, result.run)
    found, unreadable = find_norm_statistics([(tmp_path, result)])
    assert (found, len(unreadable)) == ([], 1)


def test_it_must_be_of_the_run_beside_it(tmp_path: Path) -> None:
    run = outcome((0.2,)).run
    (tmp_path / NAME).write_bytes(measured(run).to_json())
    with pytest.raises(InputError, match="another run"):
        read_norm_statistics(tmp_path, replace(run, seed=1))
