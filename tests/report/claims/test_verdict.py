"""How a verdict is headed."""

from __future__ import annotations

import pytest

from rkcnn.report.claims.claims import Claim, Pair
from rkcnn.report.claims.verdict import Finding, JudgedClaim, Verdict
from rkcnn.report.statistics import Difference

PAIR = Pair("mnist", "RKCNN-I-2@k=32", "RKCNN-E-2@k=32")
CLAIM = Claim("id", "short", "sentence", 1, ("tb:MNIST",), "better", (PAIR,), caveat="it is larger")


def finding(verdict: Verdict) -> Finding:
    return Finding(PAIR, Difference(-0.001, (-0.002, -0.0005), 4, 0.01), 0.01, None, verdict)


@pytest.mark.parametrize(
    ("verdict", "found", "missing", "heading"),
    [
        ("supported", ["supported"], 0, "supported"),
        ("supported", ["supported"], 3, "supported so far (1 of 4 comparisons)"),
        ("undecided", ["undecided"], 1, "undecided (1 of 2 comparisons)"),
        ("undecided", ["supported"], 18, "undecided (1 of 19 comparisons: 1 as claimed)"),
        ("undecided", ["supported", "undecided"], 0, "undecided (1 as claimed, 1 undecided)"),
    ],
)
def test_the_heading_counts_what_the_verdict_leaves_open(
    verdict: Verdict, found: list[Verdict], missing: int, heading: str
) -> None:
    judged = JudgedClaim(CLAIM, verdict, "why", tuple(map(finding, found)), (PAIR,) * missing)
    assert judged.heading == heading
    assert judged.caveat == "it is larger"
