"""The paper's claims, judged from views."""

from __future__ import annotations

from collections.abc import Sequence

from rkcnn.report.claims import CLAIMS
from rkcnn.report.verdict import Judgement, judge
from rkcnn.report.view import View


def judge_claims(views: Sequence[View]) -> list[Judgement]:
    """Every claim, from last-epoch errors at the paper's recipe alone: another recipe would test another claim."""
    seen = [view for view in views if view.pace == "paper"]
    records = {
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
    return [judge(claim, records, params) for claim in CLAIMS]
