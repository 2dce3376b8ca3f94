"""Copies of one run that say different things are named."""

from __future__ import annotations

from pathlib import Path

from report.records import put_records
from rkcnn.report.copies import note_copies
from rkcnn.report.view import read_records


def test_equal_copies_and_other_seeds_are_nothing_to_say(tmp_path: Path) -> None:
    put_records(tmp_path / "a", {"ResNet@k=32": (0.004, 0.005)})
    put_records(tmp_path / "b", {"ResNet@k=32": (0.004,)})
    assert list(note_copies(read_records(tmp_path)[0])) == []


def test_another_error_is_said_with_both_places(tmp_path: Path) -> None:
    (first,) = put_records(tmp_path / "a", {"ResNet@k=32": (0.004,)})
    (second,) = put_records(tmp_path / "b", {"ResNet@k=32": (0.003,)})
    (third,) = put_records(tmp_path / "c", {"ResNet@k=32": (None,)})
    (said,) = note_copies(read_records(tmp_path)[0])
    assert said.startswith(f"{second}, {third} are copies of the run in {first} with another outcome; the report takes")
