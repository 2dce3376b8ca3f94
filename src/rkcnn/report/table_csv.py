"""A table for spreadsheets and programs: one line a row, numbers alone, errors in percent."""

from __future__ import annotations

import csv
import io

from rkcnn.report.compare import Contrast, compare
from rkcnn.report.cost_check import check_costs
from rkcnn.report.entry import is_comparable, printed_mean
from rkcnn.report.footprint import find_footprint
from rkcnn.report.statistics import Sample
from rkcnn.report.view import Row, View

Value = str | int | float | None


def table_csv(view: View) -> str:
    """Errors and differences in percent to four decimals, memory in MiB; an empty cell is a number that isn't there."""
    contrasts = {contrast.row.spec: contrast for contrast in compare(view)}
    rows = [_values(view, row) | _contrast(contrasts.get(row.spec)) for row in view.rows]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _values(view: View, row: Row) -> dict[str, Value]:
    params, flops = check_costs(view, row)
    theirs, cell = printed_mean(row), row.printed
    last, best = row.last, row.best
    memory = find_footprint(view, row)
    return {
        "table": view.table.name,
        "preset": view.preset,
        "recipe": view.table.recipe_at(view.preset),
        "data": view.table.data_at(view.preset),
        "network": row.spec,
        "label": row.label,
        "family": row.family,
        "params_printed": params.printed,
        "params": row.params,
        "params_check": params.state,
        "flops_printed": flops.printed,
        "paper_flops": row.paper_flops,
        "flops_check": flops.state,
        "flops": row.flops,
        "theirs": cell.printed if cell else None,
        "theirs_min": _percent(cell.lowest if cell else None),
        "theirs_mean": _percent(cell.mean if cell else None),
        "theirs_std": _percent(cell.std if cell else None),
        "theirs_runs": cell.runs if cell else None,
        "theirs_quoted_from": cell.quoted if cell else None,
        **_sample("last", last),
        **_sample("best", best),
        "last_minus_theirs": _gap(view, row, last, theirs),
        "best_minus_theirs": _gap(view, row, best, theirs),
        "finished": len(row.results),
        "diverged": len(row.diverged),
        "missing": row.missing,
        "seconds": None if row.seconds is None else round(row.seconds, 1),
        "together": row.together,
        **{f"memory_{name}": None if value is None else f"{value:g}" for name, value in memory._asdict().items()},
    }


def _contrast(contrast: Contrast | None) -> dict[str, Value]:
    names = ("reference", "difference", "low", "high", "welch_p", "corrected_p", "permutation_p", "smallest_p")
    judged = ("only_wrong", "only_reference_wrong", "mcnemar_p")
    if contrast is None:
        return dict.fromkeys((*names, *judged))
    found, permutation = contrast.difference, contrast.permutation
    low, high = found.interval or (None, None)
    numbers = (_percent(found.value), _percent(low), _percent(high))
    exact = (permutation.p, permutation.smallest) if permutation else (None, None)
    chances = (found.p, contrast.p, *exact)
    values = (contrast.reference.spec, *numbers, *map(_chance, chances))
    images = (contrast.mcnemar.only_a, contrast.mcnemar.only_b) if contrast.mcnemar else (None, None)
    chance = _chance(contrast.mcnemar.p if contrast.mcnemar else None)
    return dict(zip((*names, *judged), (*values, *images, chance), strict=True))


def _sample(name: str, sample: Sample | None) -> dict[str, Value]:
    mean, std, least = (sample.mean, sample.std, sample.min) if sample else (None, None, None)
    return {f"{name}_mean": _percent(mean), f"{name}_std": _percent(std), f"{name}_min": _percent(least)}


def _gap(view: View, row: Row, ours: Sample | None, theirs: float | None) -> str | None:
    return _percent(ours.mean - theirs) if ours and theirs is not None and is_comparable(view, row) else None


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{100 * value:.4f}"


def _chance(p: float | None) -> str | None:
    return None if p is None else f"{p:.3g}"
