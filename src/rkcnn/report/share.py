"""A claim about parameters, judged from what was counted."""

from __future__ import annotations

from collections.abc import Mapping

from rkcnn.record.tables import TABLES
from rkcnn.report.claims import Claim
from rkcnn.report.judgement import Judgement

SHARES = (0.055 / 0.285, 0.065 / 0.275), (0.075 / 0.225, 0.085 / 0.215)
"""Where the ends of "21~36 %" lie when the cells behind them, 0.06 / 0.28 and 0.08 / 0.22, are read as rounded."""


def judge_share(claim: Claim, params: Mapping[str, int]) -> Judgement:
    """Whether the RKCNNs' share of their published rivals' parameters, smallest to largest, is the paper's."""
    ours = [params[name] for name in TABLES["sota-mnist"].specs if name.startswith("RKCNN-")]
    rivals = [params[name] for name in TABLES["sota-mnist"].specs if not name.startswith("RKCNN-")]
    ends = min(ours) / max(rivals), max(ours) / min(rivals)
    holds = all(low <= end <= high for end, (low, high) in zip(ends, SHARES, strict=True))
    low, high = (f"{100 * least:.0f} to {100 * most:.0f} %" for least, most in SHARES)
    exactly = f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f} % as counted"
    why = (
        f"it is {exactly}; the paper divides cells printed to 0.01 M, which allows {low} for its lower end and {high} "
        "for its upper, and prints 0.22 M for networks of 208,266"
    )
    return Judgement(claim, "supported" if holds else "contradicted", why, exactly=exactly)
