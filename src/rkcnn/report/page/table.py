"""The rows of the page's tables: the text of each cell, and what it is sorted by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rkcnn.model.spec import depends_on_data
from rkcnn.report.compare import Comparison
from rkcnn.report.costs import (
    MEMORY_HEADS,
    NONE,
    CostCheck,
    find_footprint,
    flops_rule,
    format_footprint,
    is_measured,
    shorten,
)
from rkcnn.report.paper import UNITS
from rkcnn.report.report import TableReport
from rkcnn.report.results import ResultTable
from rkcnn.report.row import Row
from rkcnn.report.sentences import percent, signed
from rkcnn.report.statistics import Sample
from rkcnn.report.tables.cells import RowText, differences_from_paper, is_filled

TIED = "\u00a0"  # keeps a number and its unit, or the ends of an interval, on one line


class Head(NamedTuple):
    """The head of a column."""

    text: str
    number: bool = True  # the column's cells end at the right


class PageCell(NamedTuple):
    """`value` is what the cell is sorted by, None always last; `below` stands under the text, `note` shows on hover."""

    text: str
    value: float | str | None = None
    below: str = ""
    note: str | None = None


class PageLine(NamedTuple):
    """One network in a table of the page."""

    at: int  # the number of the row in its table
    network: str
    label: str
    family: str
    cells: tuple[PageCell, ...]
    done: bool = True
    is_reference: bool = False
    facts: Sequence[tuple[str, str]] = ()  # shown for its point in a figure, as (name, text)


class Grid(NamedTuple):
    """A table of the page: the first head is the network's, the others are those of the cells."""

    heads: tuple[Head, ...]
    lines: list[PageLine]


def lay_out(part: TableReport) -> Grid:
    """Return one line for each row, in the table's order; columns with nothing in them are left out.

    What was found comes first, since a narrow window shows no more.
    """
    results = part.results
    comparisons = {comparison.row.network: comparison for comparison in part.comparisons}
    references = {comparison.reference.network: comparison.reference for comparison in part.comparisons}
    against = next(iter(references.values())).label if len(references) == 1 else "the reference"
    ours = "" if results.of_any_runs else "ours, "
    rule = flops_rule(results).replace("'", "’")
    heads = (
        Head("network", False),
        Head(f"against {against}", False),
        Head("difference [95\u00a0%]", False),
        *map(Head, (f"{ours}last epoch", "n", "paper", f"{ours}best epoch (chosen on the {results.held_out} set)")),
        *map(Head, ("Δ best", "Δ last", "params", f"FLOPs ({rule})")),
    )
    lines = []
    for i, (row, text) in enumerate(zip(results.rows, part.texts, strict=True)):
        comparison = comparisons.get(row.network)
        concluded = PageCell(NONE)
        if part.comparisons:
            concluded = _conclude(results, row, comparison, len(references) > 1)
        cells = (concluded, _differ(comparison, results.decimals), *_list_errors(results, row, text))
        lines.append(
            PageLine(
                *(i, row.network, row.label, row.family, (*cells, _cost(text.params), _cost(text.flops))),
                done=row.last is not None,
                is_reference=row.network in references,
                facts=list_facts(row, results.decimals),
            )
        )
    return _drop_empty(heads, lines)


def lay_out_memory(part: TableReport) -> Grid | None:
    """Return what was measured of each row, in MiB; None where nothing was."""
    results = part.results
    if not is_measured(results):
        return None
    lines = []
    for i, row in enumerate(results.rows):
        found = find_footprint(results, row)
        cells = map(PageCell, format_footprint(found), found)
        lines.append(PageLine(i, row.network, row.label, row.family, tuple(cells), done=row.memory is not None))
    return _drop_empty((Head("network", False), *map(Head, MEMORY_HEADS)), lines)


def list_facts(row: Row, digits: int) -> list[tuple[str, str]]:
    """Return what the page shows of a row beside its point in a figure, as (name, text)."""
    facts: dict[str, str | None] = {
        "name": row.network if row.network != row.label else None,
        "error, last epoch": _spread(row.last, digits),
        "error, best epoch": _spread(row.best, digits),
        "error in the paper": row.printed.printed if row.printed and row.printed.lowest is not None else None,
        "parameters": f"{row.params:,}" if row.params else None,
        "FLOPs (2 × MAC)": _say_flops(row),
        "training": _say_time(row),
        "seeds": ", ".join(str(result.run.seed) for result in row.results),
        "diverged": ", ".join(f"seed {result.run.seed}" for result in row.diverged),
    }
    return [(name, text) for name, text in facts.items() if text]


def _drop_empty(heads: Sequence[Head], lines: Sequence[PageLine]) -> Grid:
    kept = [i for i in range(len(heads) - 1) if is_filled([line.cells[i].text for line in lines])]
    lines = [line._replace(cells=tuple(line.cells[i] for i in kept)) for line in lines]
    return Grid((heads[0], *(heads[i + 1] for i in kept)), lines)


def _list_errors(results: ResultTable, row: Row, text: RowText) -> tuple[PageCell, ...]:
    last_gap, best_gap = differences_from_paper(results, row)
    return (
        PageCell(text.last, _mean(row.last), note=" ".join(row.notes) or None),
        PageCell(text.seeds, len(row.results)),
        PageCell(_break(text.printed), row.printed_mean, note=row.printed.note if row.printed else None),
        PageCell(_break(text.best), _mean(row.best)),
        PageCell(text.best_difference, best_gap),
        PageCell(text.last_difference, last_gap),
    )


def _break(text: str) -> str:
    """Write 0.29 (0.316±0.033), which may stand on two lines."""
    return text.replace("(", " (")


def _cost(check: CostCheck) -> PageCell:
    text, remark = (re.sub(r"(?<=\d) |(?<=the) ", TIED, part) for part in (check.text, check.remark))
    return PageCell(text, _number(check), remark, check.why)


def _number(check: CostCheck) -> float | None:
    if check.counted is not None or check.printed is None:
        return check.counted
    digits, _, letter = check.printed.lstrip(">").partition(" ")
    return float(digits) * UNITS.get(letter, 1.0)


def _mean(sample: Sample | None) -> float | None:
    return sample.mean if sample else None


def _differ(comparison: Comparison | None, digits: int) -> PageCell:
    if comparison is None:
        return PageCell("-")
    value, interval, *_ = comparison.difference
    text = signed(value, digits)
    if interval is not None:
        text += f" [{signed(interval[0], digits)},{TIED}{signed(interval[1], digits)}]"
    return PageCell(text, value)


def _conclude(results: ResultTable, row: Row, comparison: Comparison | None, several: bool) -> PageCell:
    """Say in a few words what a row's comparison shows; where there are `several` references, name the row's."""
    if not row.results:
        text = "diverged" if row.diverged else "not run yet"
    elif row.diverged:
        text = f"not compared: {len(row.diverged)} of {len(row.results) + len(row.diverged)} runs diverged"
    elif row.network == results.references.get(row.network):
        text = "the reference"
    elif comparison is None:
        alone = len(row.results) < 2
        text = f"not compared: {'a single run' if alone else 'the reference lacks runs, or some diverged'}"
    elif comparison.p is None:
        text = f"not compared: {comparison.difference.missing}"
    elif comparison.separable:
        than = f" than {comparison.reference.label}" * several
        which = "more" if comparison.difference.value > 0 else "less"
        text = f"errs {which}{than} (corrected p{TIED}{comparison.p:.2g})"
    else:
        other = f" from {comparison.reference.label}" * several
        counts = dict.fromkeys(str(len(side.results)) for side in (row, comparison.reference))
        text = f"not separable{other} with {' and '.join(counts)} seeds (corrected p{TIED}{comparison.p:.2g})"
    return PageCell(text, text)


def _spread(sample: Sample | None, digits: int) -> str | None:
    if sample is None:
        return None
    spread = f" ± {percent(sample.std, digits)}" if sample.std is not None else ""
    return f"{percent(sample.mean, digits)}{spread} %"


def _say_time(row: Row) -> str | None:
    """Give the training time, and how many runs shared it."""
    if not row.seconds:
        return None
    beside = {None: ", others may have run beside it", 1: " a run"}
    return _clock(row.seconds) + beside.get(row.side_by_side, f" for up to {row.side_by_side} runs side by side")


def _say_flops(row: Row) -> str | None:
    return f"{shorten(row.flops, is_least=depends_on_data(row.network))} an image" if row.flops else None


def _clock(seconds: float) -> str:
    """Write 65 s, 11 min or 2.5 h."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
