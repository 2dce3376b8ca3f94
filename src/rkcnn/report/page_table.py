"""A view as the rows of the page's table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rkcnn.report import footprint
from rkcnn.report.compare import Contrast, reference_of
from rkcnn.report.cost_check import Check, short
from rkcnn.report.entry import decimals, entries, percent, printed_mean, signed
from rkcnn.report.statistics import Sample
from rkcnn.report.view import Row, View

HEADS = (
    "network",
    "what can be concluded",
    "ours, last epoch, %",
    "n",
    "against the reference [95\u00a0%]",
    "theirs, %",
    "ours, best epoch, %",
    "best − theirs",
    "last − theirs",
    "params",
    "FLOPs",
)
"""What was found stands first: a narrow window shows no more."""
WORDS = (0, 1, 4)  # the columns that begin at the left
MEMORY = tuple(f"{head}, MiB" for head in footprint.HEADS)


TIED = "\u00a0"  # keeps a number and its unit, or the ends of an interval, on one line


class Cell(NamedTuple):
    """`value` is what it is sorted by, None always last; `note` is shown on hovering and by a mark."""

    text: str
    value: float | str | None = None
    note: str | None = None


class Line(NamedTuple):
    at: int
    spec: str
    label: str
    family: str
    cells: tuple[Cell, ...]
    done: bool
    facts: list[tuple[str, str]]  # what hovering its point shows


def list_heads(view: View) -> tuple[str, ...]:
    """Memory stands last, and only where some was measured."""
    return (*HEADS, *MEMORY) if footprint.is_measured(view) else HEADS


def list_lines(view: View, found: Sequence[Contrast]) -> list[Line]:
    """One line a row, in the table's order; `found` are the view's comparisons."""
    contrasts = {contrast.row.spec: contrast for contrast in found}
    digits = decimals(view)
    lines = []
    for i, (row, entry) in enumerate(zip(view.rows, entries(view), strict=True)):
        theirs = printed_mean(row)
        contrast = contrasts.get(row.spec)
        cells = (
            _conclude(view, row, contrast),
            Cell(entry.last, _mean(row.last)),
            Cell(entry.seeds, len(row.results)),
            _against(contrast, digits),
            Cell(entry.theirs, theirs, row.printed.note if row.printed else None),
            Cell(entry.best, _mean(row.best)),
            Cell(entry.best_difference, _gap(row, row.best, theirs)),
            Cell(entry.last_difference, _gap(row, row.last, theirs)),
            _cost(entry.params),
            _cost(entry.flops),
            *(_memory(view, row) if footprint.is_measured(view) else ()),
        )
        lines.append(Line(i, row.spec, row.label, row.family, cells, row.last is not None, _facts(row, digits)))
    return lines


def _memory(view: View, row: Row) -> list[Cell]:
    found = footprint.find_footprint(view, row)
    return [Cell(text, value) for text, value in zip(footprint.say_footprint(found), found, strict=True)]


def _cost(check: Check) -> Cell:
    note = f"the records count {check.counted:,}" if check.state == "differs" else check.why
    return Cell(check.text.replace(" ", TIED), _number(check), note)


def _number(check: Check) -> float | None:
    if check.counted is not None or check.printed is None:
        return check.counted
    digits, _, letter = check.printed.lstrip(">").partition(" ")
    return float(digits) * {"K": 1e3, "M": 1e6, "G": 1e9}.get(letter, 1.0)


def _mean(sample: Sample | None) -> float | None:
    return sample.mean if sample else None


def _gap(row: Row, sample: Sample | None, theirs: float | None) -> float | None:
    return sample.mean - theirs if sample and theirs is not None and row.whole else None


def _against(contrast: Contrast | None, digits: int) -> Cell:
    if contrast is None:
        return Cell("-")
    value, interval, *_ = contrast.difference
    text = signed(value, digits)
    if interval is not None:
        text += f" [{signed(interval[0], digits)},{TIED}{signed(interval[1], digits)}]"
    return Cell(text, value)


def _conclude(view: View, row: Row, contrast: Contrast | None) -> Cell:
    """A few words, sorted by what they say."""
    reference = reference_of(view.table, row.spec)
    if not row.results:
        text = "diverged" if row.diverged else "not run yet"
    elif view.pace == "smoke":
        text = "nothing: smoke"
    elif row.diverged:
        text = f"nothing: {len(row.diverged)} of {len(row.results) + len(row.diverged)} runs diverged"
    elif row.spec == reference:
        text = "the reference"
    elif contrast is None:
        alone = len(row.results) < 2
        text = "nothing from one run" if alone else "nothing: the reference lacks runs, or some diverged"
    elif contrast.p is None:
        text = f"nothing: {contrast.difference.missing}"
    elif contrast.separable:
        text = f"errs {'more' if contrast.difference.value > 0 else 'less'} (p{TIED}{contrast.p:.2g})"
    else:
        counts = dict.fromkeys(str(len(side.results)) for side in (row, contrast.reference))
        text = f"not separable with {' and '.join(counts)} seeds (p{TIED}{contrast.p:.2g})"
    return Cell(text, text)


def _facts(row: Row, digits: int) -> list[tuple[str, str]]:
    facts: dict[str, str | None] = {
        "error, last epoch": _spread(row.last, digits),
        "error, best epoch": _spread(row.best, digits),
        "parameters": f"{row.params:,}" if row.params else None,
        "FLOPs": f"{short(row.flops)} an image" if row.flops else None,
        "training": _say_time(row),
        "seeds": ", ".join(str(result.run["seed"]) for result in row.results),
        "diverged": ", ".join(f"seed {result.run['seed']}" for result in row.diverged),
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
