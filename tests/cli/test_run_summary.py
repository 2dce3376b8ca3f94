"""Times as a person reads them."""

from __future__ import annotations

import pytest

from rkcnn.cli.run_summary import roughly


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
