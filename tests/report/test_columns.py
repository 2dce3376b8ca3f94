"""Cells in columns."""

from __future__ import annotations

from rkcnn.report.columns import columns


def test_words_left_numbers_right_and_nothing_left_out() -> None:
    rows = (("name", "a", "empty", "says"), ("x", "1", "-", "yes"), ("longer", "100", "", ""))
    assert list(columns(rows, words=(0, 3))) == ["name      a  says", "x         1  yes ", "longer  100      "]
