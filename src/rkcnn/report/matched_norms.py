"""RKCNN beside the numerical models of MNIST when all have the same norm, as docs/findings.md shows it."""

from __future__ import annotations

from rkcnn.report.report import Report
from rkcnn.report.sentences import format_difference, join
from rkcnn.report.tables.markdown import table_lines

CLAIM = "beats-numerical-matched"
NOT_RUN = "No pair of networks with the same norm has two runs of each yet."
DECIMALS = 3


def write_norms(report: Report) -> str:
    """Return the table of differences between networks with the same norm, and which are told apart."""
    rows, apart = [], []
    for way, claims in report.claims.items():
        for finding in (finding for claim in claims if claim.claim.id == CLAIM for finding in claim.findings):
            value, *interval = format_difference(finding.difference, DECIMALS)
            difference = " ".join((value, *(f"({each})" for each in interval)))
            rows.append((f"MNIST, {way}", finding.pair.first, finding.pair.second, difference))
            if finding.verdict != "undecided":
                apart.append(f"{finding.pair.first} and {finding.pair.second}")
    if not rows:
        return NOT_RUN
    told = f"these are told apart: {join(apart)}" if apart else "none is told apart"
    table = table_lines(("data, recipe", "RKCNN", "network of the same norm", "RKCNN minus the other"), rows)
    return "\n".join((*table, "", f"After Holm's correction for these pairs, {told}."))
