"""The paper's claims, judged from the tables at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rkcnn.report.claims import CLAIMS
from rkcnn.report.verdict import Judgement, judge
from rkcnn.report.view import View


def judge_claims(views: Iterable[View], table: str | None = None) -> list[Judgement]:
    """Every claim, or those that speak of one table, from views of one recipe's pace; smoke judges nothing."""
    seen = [view for view in views if view.pace != "smoke"]
    if len({view.pace for view in seen}) > 1:
        raise ValueError("claims are judged from views of one pace")
    errors = {
        (view.table.name, row.spec): [result.error for result in row.results if result.error is not None]
        for view in seen
        for row in view.rows
        if row.results
    }
    params = {
        row.spec: row.params
        for view in seen
        for row in view.rows
        if view.table.data == "mnist" and row.params is not None
    }
    if not errors:
        return []
    judged = [judge(claim, errors, params) for claim in CLAIMS]
    return [judgement for judgement in judged if table is None or table in tables_of(judgement)]


def tables_of(judgement: Judgement) -> Sequence[str]:
    """The tables whose records a claim is judged from."""
    if judgement.claim.kind == "share":
        return ("mnist", "sota-mnist")
    comparisons = (*(finding.comparison for finding in judgement.findings), *judgement.missing)
    return tuple(dict.fromkeys(comparison.table for comparison in comparisons))


def say_all(judgements: Iterable[Judgement]) -> Iterator[str]:
    """A line a claim that was tested, and one of all that were not."""
    waiting = []
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
