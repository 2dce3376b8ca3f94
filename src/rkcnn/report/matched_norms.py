"""RKCNN beside the numerical models of MNIST when all have the same norm, as the pages of docs/ show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rkcnn.model.spec import parse
from rkcnn.record.tables import TABLES
from rkcnn.report.claims.verdict import Finding
from rkcnn.report.figures.overview import Panel, draw_overview
from rkcnn.report.pairs import say_apart
from rkcnn.report.published import SHOWN
from rkcnn.report.report import Report
from rkcnn.report.results import build_result_table
from rkcnn.report.sentences import format_difference
from rkcnn.report.tables.markdown import table_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLAIM = "beats-numerical-matched"
NOT_RUN = "No pair of networks with the same norm has two runs of each yet."
DECIMALS = 3
PRESET = "fast"  # of the picture
NORMS = {"bn": "batch norm everywhere", "gn": "group norm everywhere"}


def say_norms(report: Report) -> str:
    """Say which networks with the same norm are told apart after Holm's correction for all such pairs; else empty."""
    found = [finding for _, finding in _find_pairs(report)]
    apart = [f"{each.pair.first} and {each.pair.second}" for each in found if each.verdict != "undecided"]
    return say_apart(len(found), apart) if found else ""


def write_norms(report: Report) -> str:
    """Return the table of differences between networks with the same norm, and which are told apart."""
    rows = []
    for way, finding in _find_pairs(report):
        value, *interval = format_difference(finding.difference, DECIMALS)
        difference = " ".join((value, *(f"({each})" for each in interval)))
        rows.append((f"MNIST, {way}", finding.pair.first, finding.pair.second, difference))
    if not rows:
        return NOT_RUN
    table = table_lines(("data, recipe", "RKCNN", "network of the same norm", "RKCNN minus the other"), rows)
    return "\n".join((*table, "", say_norms(report)))


def draw_norms(report: Report) -> Figure | None:
    """Draw the errors of all runs with batch norm everywhere and with group norm everywhere; None with too few."""
    results = build_result_table(TABLES["norms"], report.records, PRESET)
    rows = {row.network: row if row.results or row.diverged else None for row in results.rows}
    panels = []
    for norm, title in NORMS.items():
        lines = []
        for name, (network, _) in SHOWN.items():
            spec = str(parse(f"{network},norm={norm}"))
            specs = {name: spec, f"{name}, a set each": f"{spec},statistics=each"}
            lines += [(line, rows[spec]) for line, spec in specs.items() if spec in rows]
        panels.append(Panel(title, results, tuple(lines)))
    return draw_overview(panels, same_scale=True)


def _find_pairs(report: Report) -> Iterator[tuple[str, Finding]]:
    """Yield each pair of networks with the same norm that was tested, after the preset of its runs."""
    for way, claims in report.claims.items():
        yield from ((way, finding) for claim in claims if claim.claim.id == CLAIM for finding in claim.findings)
