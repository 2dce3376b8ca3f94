"""A view as the rows of the page's table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rkcnn.report import footprint
from rkcnn.report.compare import Contrast, reference_of
from rkcnn.report.cost_check import Check
from rkcnn.report.entry import Entry, decimals, entries, is_comparable, is_filled, printed_mean, signed
from rkcnn.report.page_facts import list_facts
from rkcnn.report.statistics import Sample
from rkcnn.report.view import Row, View

TIED = "\u00a0"  # keeps a number and its unit, or the ends of an interval, on one line


class Head(NamedTuple):
    text: str
    number: bool = True  # stands at the right


class Cell(NamedTuple):
    """`value` is what it is sorted by, None always last; `below` stands under the text, `note` is shown on hovering."""

    text: str
    value: float | str | None = None
    below: str = ""
    note: str | None = None


class Line(NamedTuple):
    at: int
    spec: str
    label: str
    family: str
    cells: tuple[Cell, ...]
    done: bool = True
    is_reference: bool = False
    facts: Sequence[tuple[str, str]] = ()  # what hovering its point shows


class Grid(NamedTuple):
    """A table of the page: the first head is the network's, the others those of the cells."""

    heads: tuple[Head, ...]
    lines: list[Line]


def lay_out(view: View, found: Sequence[Contrast]) -> Grid:
    """One line a row, in the table's order; `found` are the view's comparisons. A column with nothing is left out.

    What was found stands first: a narrow window shows no more.
    """
    contrasts = {contrast.row.spec: contrast for contrast in found}
    references = {contrast.reference.spec: contrast.reference for contrast in found}
    against = next(iter(references.values())).label if len(references) == 1 else "the reference"
    heads = (
        Head("network", False),
        Head(f"against {against}", False),
        Head("difference [95\u00a0%]", False),
        *map(Head, ("ours, last epoch", "n", "theirs", "ours, best epoch", "Δ best", "Δ last", "params")),
        Head("FLOPs (paper’s rule)"),
    )
    digits = decimals(view)
    lines = []
    for i, (row, entry) in enumerate(zip(view.rows, entries(view), strict=True)):
        contrast = contrasts.get(row.spec)
        concluded = _conclude(view, row, contrast, len(references) > 1) if found else Cell(footprint.NONE)
        cells = (concluded, _differ(contrast, digits), *_list_errors(view, row, entry))
        lines.append(
            Line(
                *(i, row.spec, row.label, row.family, (*cells, _cost(entry.params), _cost(entry.flops))),
                done=row.last is not None,
                is_reference=row.spec in references,
                facts=list_facts(row, digits),
            )
        )
    return _drop_empty(heads, lines)


def lay_out_memory(view: View) -> Grid | None:
    """What was measured of each row, in MiB; None where nothing was."""
    if not footprint.is_measured(view):
        return None
    lines = []
    for i, row in enumerate(view.rows):
        found = footprint.find_footprint(view, row)
        cells = map(Cell, footprint.say_footprint(found), found)
        lines.append(Line(i, row.spec, row.label, row.family, tuple(cells), done=row.memory is not None))
    return _drop_empty((Head("network", False), *map(Head, footprint.HEADS)), lines)


def _drop_empty(heads: Sequence[Head], lines: Sequence[Line]) -> Grid:
    kept = [i for i in range(len(heads) - 1) if is_filled([line.cells[i].text for line in lines])]
    lines = [line._replace(cells=tuple(line.cells[i] for i in kept)) for line in lines]
    return Grid((heads[0], *(heads[i + 1] for i in kept)), lines)


def _list_errors(view: View, row: Row, entry: Entry) -> tuple[Cell, ...]:
    theirs = printed_mean(row)
    gaps = [
        ours.mean - theirs if ours and theirs is not None and is_comparable(view, row) else None
        for ours in (row.best, row.last)
    ]
    return (
        Cell(entry.last, _mean(row.last)),
        Cell(entry.seeds, len(row.results)),
        Cell(_break(entry.theirs), theirs, note=row.printed.note if row.printed else None),
        Cell(_break(entry.best), _mean(row.best)),
        Cell(entry.best_difference, gaps[0]),
        Cell(entry.last_difference, gaps[1]),
    )


def _break(text: str) -> str:
    """0.29 (0.316±0.033): may stand on two lines."""
    return text.replace("(", " (")


def _cost(check: Check) -> Cell:
    text, remark = (re.sub(r"(?<=\d) ", TIED, part) for part in (check.text, check.remark))
    return Cell(text, _number(check), remark, check.why)


def _number(check: Check) -> float | None:
    if check.counted is not None or check.printed is None:
        return check.counted
    digits, _, letter = check.printed.lstrip(">").partition(" ")
    return float(digits) * {"K": 1e3, "M": 1e6, "G": 1e9}.get(letter, 1.0)


def _mean(sample: Sample | None) -> float | None:
    return sample.mean if sample else None


def _differ(contrast: Contrast | None, digits: int) -> Cell:
    if contrast is None:
        return Cell("-")
    value, interval, *_ = contrast.difference
    text = signed(value, digits)
    if interval is not None:
        text += f" [{signed(interval[0], digits)},{TIED}{signed(interval[1], digits)}]"
    return Cell(text, value)


def _conclude(view: View, row: Row, contrast: Contrast | None, several: bool) -> Cell:
    """A few words, sorted by what they say; where there are `several` references they name it."""
    if not row.results:
        text = "diverged" if row.diverged else "not run yet"
    elif row.diverged:
        text = f"nothing: {len(row.diverged)} of {len(row.results) + len(row.diverged)} runs diverged"
    elif row.spec == reference_of(view.table, row.spec):
        text = "the reference"
    elif contrast is None:
        alone = len(row.results) < 2
        text = "nothing from one run" if alone else "nothing: the reference lacks runs, or some diverged"
    elif contrast.p is None:
        text = f"nothing: {contrast.difference.missing}"
    elif contrast.separable:
        than = f" than {contrast.reference.label}" * several
        which = "more" if contrast.difference.value > 0 else "less"
        text = f"errs {which}{than} (corrected p{TIED}{contrast.p:.2g})"
    else:
        other = f" from {contrast.reference.label}" * several
        counts = dict.fromkeys(str(len(side.results)) for side in (row, contrast.reference))
        text = f"not separable{other} with {' and '.join(counts)} seeds (corrected p{TIED}{contrast.p:.2g})"
    return Cell(text, text)
