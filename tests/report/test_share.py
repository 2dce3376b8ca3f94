"""A claim about parameters needs no run."""

from __future__ import annotations

from rkcnn.report.claims import CLAIMS
from rkcnn.report.counted import COUNTED
from rkcnn.report.share import judge_share


def test_shares_of_parameters() -> None:
    (claim,) = (each for each in CLAIMS if each.kind == "share")
    found = judge_share(claim, COUNTED)
    assert found.heading == "supported (19.6 to 37.6 % as counted)"
    assert "prints 0.22 M for networks of 208,266" in found.why
    assert judge_share(claim, {**COUNTED, "RKCNN-I-2@k=32": 120_000}).verdict == "contradicted"
