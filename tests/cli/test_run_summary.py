"""Times as a person reads them, and what is suggested next."""

from __future__ import annotations

from pathlib import Path

import pytest

from rkcnn.cli.run_summary import roughly, suggest_next
from rkcnn.record.result import read_result


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "seconds"),
        (44, "seconds"),
        (46, "1 minute"),
        (100, "2 minutes"),
        (1337, "20 minutes"),
        (2600, "40 minutes"),
        (2760, "1 hour"),
        (4407, "1 hour"),
        (9000, "2 hours"),
        (12 * 3600, "10 hours"),
        (20 * 3600, "1 day"),
        (3.4 * 86400, "3 days"),
        (1234 * 86400, "1,000 days"),
    ],
)
def test_an_estimate_has_one_significant_digit(seconds: float, text: str) -> None:
    assert roughly(seconds) == text


def test_the_commands_that_use_the_network_are_suggested(trained: Path) -> None:
    lines = list(suggest_next(read_result(trained / "result.json"), trained))
    for line, command in zip(lines, ("evaluate", "predict", "runs"), strict=True):
        assert f"rkcnn {command} " in line
