"""A table as Markdown: whole, and the short form of the README."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rkcnn.report import footprint
from rkcnn.report.compare import compare
from rkcnn.report.cost_check import NAMES, Check
from rkcnn.report.entry import Entry, decimals, entries, is_filled
from rkcnn.report.footnotes import footnotes
from rkcnn.report.judged import say_all
from rkcnn.report.judgement import Judgement
from rkcnn.report.view import View
from rkcnn.report.words import conclude, mark, note_comparisons, tag, title

ERRORS = ("theirs", "ours, last", "n", "ours, best", "Δ last", "Δ best")
HEADS = ("network", "params", "FLOPs (paper's rule)", "costs", *ERRORS, *footprint.HEADS)
SHORT = ("network", "params", "paper", "ours, best epoch", "ours, last epoch", "n")


def table_markdown(view: View, judgements: Sequence[Judgement] = ()) -> str:
    return "\n".join(_lines(view, judgements)) + "\n"


def short_table(view: View) -> str:
    """The rows that have results."""
    run = [entry for entry, row in zip(entries(view), view.rows, strict=True) if row.results or row.diverged]
    cells = [(_name(view, e), e.params.text, *map(_space, (e.theirs, e.best, e.last)), e.seeds) for e in run]
    return "\n".join(_table(SHORT, cells))


def _lines(view: View, judgements: Sequence[Judgement]) -> Iterator[str]:
    name, _, about = title(view).partition(": ")
    yield f"# {name}"
    yield ""
    yield f"{about[:1].upper()}{about[1:]}."
    if mark(view):
        yield ""
        yield f"**{mark(view)}**"
    yield ""
    heads = tuple(f"{head} ({tag(view)})" if tag(view) and head.startswith("ours") else head for head in HEADS)
    yield from _table(heads, [_cells(view, entry) for entry in entries(view)])
    yield ""
    yield from (f"- {_escape(note)}" for note in footnotes(view))
    contrasts = compare(view)
    sections = {
        "Comparisons": [*note_comparisons(view, contrasts), *(conclude(each, decimals(view)) for each in contrasts)],
        "The paper's claims": list(say_all(judgements)),
    }
    for head, lines in sections.items():
        if lines:
            yield ""
            yield f"## {head}" + f" ({tag(view)})" * bool(tag(view))
            yield ""
            yield from (f"- {_escape(line)}" for line in lines)


def _cells(view: View, entry: Entry) -> tuple[str, ...]:
    return (
        _name(view, entry),
        entry.params.text,
        entry.flops.text,
        _costs(entry.params, entry.flops),
        _space(entry.theirs),
        _space(entry.last),
        entry.seeds,
        _space(entry.best),
        entry.last_difference,
        entry.best_difference,
        *entry.memory,
    )


def _name(view: View, entry: Entry) -> str:
    return f"{tag(view)} {entry.label}" if tag(view) else entry.label


def _costs(*checks: Check) -> str:
    """agree, or which of the two doesn't and how; the paper's, where nothing was counted."""
    states = {check.state for check in checks if check.state != "-"}
    if states == {"agrees"}:
        return "agree"
    if states <= {"not counted"}:
        return "the paper's" if states else "-"
    return ", ".join(_say(check) for check in checks if check.state != "-")


def _say(check: Check) -> str:
    other = f" (paper {check.printed})" if check.state in ("slip", "differs") else ""
    return f"{NAMES[check.column]}: {check.state}{other}"


def _space(text: str) -> str:
    """0.29 (0.316 ± 0.033)"""
    return text.replace("(", " (").replace("±", " ± ").replace("*", "\\*")


def _escape(text: str) -> str:
    return text.replace("*", "\\*").replace("~", "\\~")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A column with nothing in it is left out."""
    kept = [i for i, column in enumerate(zip(*rows, strict=True)) if is_filled(column)]
    yield f"| {' | '.join(heads[i] for i in kept)} |"
    yield f"|{'|'.join('---' if heads[i] in ('network', 'costs') else '--:' for i in kept)}|"
    for row in rows:
        yield f"| {' | '.join(row[i] for i in kept)} |"
