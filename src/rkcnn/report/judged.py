"""The paper's claims, judged from the tables at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rkcnn.record.tables import TABLES
from rkcnn.report.claims import CLAIMS, Claim, Key
from rkcnn.report.errors import sample_of
from rkcnn.report.judgement import Judgement
from rkcnn.report.statistics import Sample
from rkcnn.report.verdict import judge
from rkcnn.report.view import Found, view_of

CORRECTION = (
    "Each claim is judged from every table that has results by this recipe, shown here or not, and corrected for its "
    "own comparisons, a table for all of its: a pair may separate here and not there."
)


def judge_claims(records: Found, preset: str) -> list[Judgement]:
    """Every claim from all tables at one preset, since a claim may speak of several; smoke judges nothing.

    Rows of which runs diverged are named and not judged by what is left of them.
    """
    if preset == "smoke":
        return []
    seen = [view_of(table, records, preset) for table in TABLES.values()]
    if all(view.empty for view in seen):
        return []
    rows = {(view.table.name, row.spec): row for view in seen for row in view.rows}
    errors = {key: row.last for key, row in rows.items() if row.last}
    parts = {key: (len(row.diverged), len(row.results) + len(row.diverged)) for key, row in rows.items()}
    diverged = {key: f"{lost} of {runs}" for key, (lost, runs) in parts.items() if lost}
    printed = {key: sample for key, row in rows.items() if (sample := sample_of(row.printed))}
    return [replace(judge(claim, errors, diverged), theirs=_judge_theirs(claim, printed)) for claim in CLAIMS]


def _judge_theirs(claim: Claim, printed: Mapping[Key, Sample]) -> str:
    """What the means and deviations that the paper printed make of its claim; empty where it printed none for it."""
    judged = judge(claim, printed)
    return judged.heading if judged.findings else ""


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
    caveat = judgement.claim.caveat if judgement.findings else None
    theirs = f"the paper's own numbers, by the same rules: {judgement.theirs}" if judgement.theirs else None
    why = "; ".join(filter(None, (judgement.why, theirs, caveat)))
    return f"{judgement.heading}: {judgement.claim.short} ({why})."
