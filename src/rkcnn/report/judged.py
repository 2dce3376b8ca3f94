"""The paper's claims, judged from the tables at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rkcnn.record.table import TABLES
from rkcnn.report.claims import CLAIMS
from rkcnn.report.verdict import Judgement, judge
from rkcnn.report.view import Found, view_of

CORRECTION = (
    "Each claim is corrected for its own comparisons, the table for all of its: a pair may separate here and not there."
)


def judge_claims(records: Found, pace: str) -> list[Judgement]:
    """Every claim from all tables at one pace, since a claim may speak of several; smoke judges nothing.

    Rows of which runs diverged are named and not judged by what is left of them.
    """
    if pace == "smoke":
        return []
    seen = [view_of(table, records, pace) for table in TABLES.values()]
    if all(view.empty for view in seen):
        return []
    rows = {(view.table.name, row.spec): row for view in seen for row in view.rows}
    errors = {key: [result.error for result in row.results if result.error is not None] for key, row in rows.items()}
    parts = {key: (len(row.diverged), len(row.results) + len(row.diverged)) for key, row in rows.items()}
    diverged = {key: f"{lost} of {runs}" for key, (lost, runs) in parts.items() if lost}
    return [judge(claim, errors, diverged) for claim in CLAIMS]


def speaks_of(judgement: Judgement, table: str) -> bool:
    """Whether a claim is judged from the records of this table."""
    if judgement.claim.kind == "share":
        return table in ("mnist", "sota-mnist")
    comparisons = (*(finding.comparison for finding in judgement.findings), *judgement.missing)
    return any(comparison.table == table for comparison in comparisons)


def say_all(judgements: Iterable[Judgement]) -> Iterator[str]:
    """A line a claim that was tested, and one of all that were not."""
    waiting = []
    judgements = list(judgements)
    if any(judgement.findings for judgement in judgements):
        yield CORRECTION
    for judgement in judgements:
        if judgement.verdict == "not yet tested":
            waiting.append(judgement.claim.short)
        else:
            yield _say(judgement)
    if waiting:
        yield f"not yet tested: {'; '.join(waiting)}."


def _say(judgement: Judgement) -> str:
    caveat = f"; {judgement.claim.caveat}" if judgement.claim.caveat and judgement.findings else ""
    return f"{judgement.heading}: {judgement.claim.short} ({judgement.why}{caveat})."
