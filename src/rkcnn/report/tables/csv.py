"""A table for spreadsheets and programs: one line a network, each cell one number or name."""

from __future__ import annotations

import csv
import io
import re

from rkcnn.escape import escape_formula
from rkcnn.report.compare import Comparison
from rkcnn.report.costs import CostCheck, find_footprint
from rkcnn.report.report import TableReport
from rkcnn.report.results import ResultTable
from rkcnn.report.row import Row
from rkcnn.report.statistics import Sample
from rkcnn.report.tables.cells import differences_from_paper

Value = str | int | float | None

_NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]\d+)?")


def table_csv(part: TableReport) -> str:
    """Return the table: errors and differences in percent to four decimals, memory in MiB, an empty cell for none."""
    results = part.results
    comparisons = {comparison.row.network: comparison for comparison in part.shown}
    rows = [
        _values(results, row, *checks) | _comparison(comparisons.get(row.network))
        for row, checks in zip(results.rows, part.checks, strict=True)
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _guard(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _values(results: ResultTable, row: Row, params: CostCheck, flops: CostCheck) -> dict[str, Value]:
    cell = row.printed
    last_gap, best_gap = differences_from_paper(results, row)
    memory = find_footprint(results, row)
    return {
        "table": results.name,
        "preset": results.preset,
        "recipe": results.recipe.name,
        "precision": results.recipe.precision,
        "data": results.data,
        "network": row.network,
        "label": row.label,
        "family": row.family,
        "params_printed": params.printed,
        "params": row.params,
        "params_check": params.state,
        "flops_printed": flops.printed,
        "paper_flops": row.paper_flops,
        "flops_check": flops.state,
        "flops": row.flops,
        "error_printed": cell.printed if cell else None,
        "printed_min": _percent(cell.lowest if cell else None),
        "printed_mean": _percent(cell.mean if cell else None),
        "printed_std": _percent(cell.std if cell else None),
        "printed_runs": cell.runs if cell else None,
        "printed_quoted_from": cell.quoted if cell else None,
        **_sample("last", row.last),
        **_sample("best", row.best),
        "last_minus_printed": _percent(last_gap),
        "best_minus_printed": _percent(best_gap),
        "finished": len(row.results),
        "diverged": len(row.diverged),
        "missing": row.missing,
        "seconds": None if row.seconds is None else round(row.seconds, 1),
        "side_by_side": row.side_by_side,
        **{f"memory_{name}": None if value is None else f"{value:g}" for name, value in memory._asdict().items()},
    }


def _comparison(comparison: Comparison | None) -> dict[str, Value]:
    names = ("reference", "difference", "low", "high", "welch_p", "corrected_p", "permutation_p", "smallest_p")
    images = ("only_wrong", "only_reference_wrong", "mcnemar_p", "image_standard_error")
    if comparison is None:
        return dict.fromkeys((*names, *images))
    found, permutation, judged = comparison.difference, comparison.permutation, comparison.mcnemar
    low, high = found.interval or (None, None)
    numbers = (_percent(found.value), _percent(low), _percent(high))
    exact = (permutation.p, permutation.smallest) if permutation else (None, None)
    values = (comparison.reference.network, *numbers, *map(_format_p, (found.p, comparison.p, *exact)))
    wrong = (judged.only_a, judged.only_b, _format_p(judged.p)) if judged else (None, None, None)
    sampling = _percent(comparison.sampling.se if comparison.sampling else None)
    return dict(zip((*names, *images), (*values, *wrong, sampling), strict=True))


def _sample(name: str, sample: Sample | None) -> dict[str, Value]:
    mean, std, least = (sample.mean, sample.std, sample.min) if sample else (None, None, None)
    return {f"{name}_mean": _percent(mean), f"{name}_std": _percent(std), f"{name}_min": _percent(least)}


def _guard(value: Value) -> Value:
    """Return a cell as it is written: a number, also a negative one as text, or a text that is no formula."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    return escape_formula(value)


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.4f}"


def _format_p(p: float | None) -> str | None:
    return None if p is None else f"{p:.3g}"
