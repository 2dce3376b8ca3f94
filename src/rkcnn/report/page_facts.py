"""What the page tells of a row when its point is asked."""

from __future__ import annotations

from rkcnn.report.cost_check import short
from rkcnn.report.entry import percent
from rkcnn.report.statistics import Sample
from rkcnn.report.view import Row


def list_facts(row: Row, digits: int) -> list[tuple[str, str]]:
    facts: dict[str, str | None] = {
        "name": row.spec if row.spec != row.label else None,
        "error, last epoch": _spread(row.last, digits),
        "error, best epoch": _spread(row.best, digits),
        "parameters": f"{row.params:,}" if row.params else None,
        "FLOPs (2 × MAC)": f"{short(row.flops)} an image" if row.flops else None,
        "training": _say_time(row),
        "seeds": ", ".join(str(result.run.seed) for result in row.results),
        "diverged": ", ".join(f"seed {result.run.seed}" for result in row.diverged),
    }
    return [(name, text) for name, text in facts.items() if text]


def _spread(sample: Sample | None, digits: int) -> str | None:
    if sample is None:
        return None
    spread = f" ± {percent(sample.std, digits)}" if sample.std is not None else ""
    return f"{percent(sample.mean, digits)}{spread} %"


def _say_time(row: Row) -> str | None:
    """Runs side by side share one time."""
    if not row.seconds:
        return None
    beside = {None: ", others may have run beside it", 1: " a run"}
    return _clock(row.seconds) + beside.get(row.together, f" for up to {row.together} runs side by side")


def _clock(seconds: float) -> str:
    """65 s, 11 min, 2.5 h."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
