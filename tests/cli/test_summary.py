"""Numbers as a person reads them."""

from __future__ import annotations

import pytest

from rkcnn.cli.summary import clock


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0:00"),
        (65, "1:05"),
        (7384, "2:03:04"),
        (71 * 3600, "71:00:00"),
        (98.2 * 3600, "4 d 2 h"),
        (1e8, "1,157 d 9 h"),
    ],
)
def test_time_by_its_size(seconds: float, text: str) -> None:
    assert clock(seconds) == text
