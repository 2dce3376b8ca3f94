"""Judges the claim about the share of parameters, from counted parameters: it needs no training."""

from __future__ import annotations

from collections.abc import Mapping

from rkcnn.record.tables import TABLES
from rkcnn.report.claims.claims import Claim
from rkcnn.report.claims.verdict import JudgedClaim, Verdict

COUNTED = {
    "RKNet-64": 208_266,
    "ODENet-64": 208_266,
    "SONODE-64": 283_658,
    "RKCNN-E-2@k=32": 55_498,
    "RKCNN-I-2@k=32": 78_410,
    "RKCNN-R-2@k=32": 78_410,
}
"""The parameters of the networks of the sota-mnist table; a test counts them again."""

CLAIMED = 21, 36  # percent
ROUNDED = (0.055 / 0.285, 0.065 / 0.275), (0.075 / 0.225, 0.085 / 0.215)
"""Where the two ends may be when the printed cells behind them, 0.06 / 0.28 and 0.08 / 0.22, are read as rounded."""


def judge_share(claim: Claim, params: Mapping[str, int]) -> JudgedClaim:
    """Judge "21~36 %": the RKCNNs' share of their published rivals' parameters, from the smallest to the largest.

    `supported` when both ends, in whole percent, are the claimed ones; `close` when they are not, and the rounding of
    the cells that the paper divides explains both; else `contradicted`.
    """
    ours = [params[name] for name in TABLES["sota-mnist"].specs if name.startswith("RKCNN-")]
    rivals = [params[name] for name in TABLES["sota-mnist"].specs if not name.startswith("RKCNN-")]
    ends = min(ours) / max(rivals), max(ours) / min(rivals)
    verdict: Verdict = "contradicted"
    if tuple(round(100 * end) for end in ends) == CLAIMED:
        verdict = "supported"
    elif all(low <= end <= high for end, (low, high) in zip(ends, ROUNDED, strict=True)):
        verdict = "close"
    low, high = (f"{100 * least:.0f} to {100 * most:.0f} %" for least, most in ROUNDED)
    counted = f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f} % as counted"
    why = (
        f"we count {100 * ends[0]:.1f} to {100 * ends[1]:.1f} %; the paper divides cells printed to 0.01 M, whose "
        f"rounding allows {low} for its lower end and {high} for its upper, and prints 0.22 M for networks of 208,266"
    )
    return JudgedClaim(claim, verdict, why, counted=counted)
