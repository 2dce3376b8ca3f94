"""A table for the terminal: errors, costs, notes, comparisons; and claims. 100 columns wide where names allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rkcnn.report.columns import columns
from rkcnn.report.compare import compare
from rkcnn.report.cost_check import Check
from rkcnn.report.entry import decimals, entries
from rkcnn.report.footnotes import footnotes
from rkcnn.report.judged import say_all
from rkcnn.report.judgement import Judgement
from rkcnn.report.memory_text import memory_text
from rkcnn.report.view import View
from rkcnn.report.words import conclude, mark, note_comparisons, tag, title

WIDTH = 100
ERRORS = ("network", "theirs", "last", "n", "best", "Δ last", "Δ best")
COSTS = ("network", "params", "our params", "", "FLOPs", "our FLOPs", "")
OWN_COSTS = ("network", "", "params", "", "", "FLOPs", "")  # of a table that the paper doesn't have


def table_text(view: View) -> str:
    return "".join(f"{line.rstrip()}\n" for line in _lines(view))


def claims_text(judgements: Sequence[Judgement], preset: str) -> str:
    """Nothing where nothing was judged."""
    heading = "The paper's claims" + f" ({preset.upper()}: not the paper's recipe)" * (preset != "paper")
    lines = [line for said in say_all(judgements) for line in _fill(said)]
    return "".join(f"{line}\n" for line in (heading, *lines)) if lines else ""


def _lines(view: View) -> Iterator[str]:
    yield from _fill(title(view), "", "  ")
    if mark(view):
        yield from _fill(mark(view), "", "  ")
    yield ""
    rows = entries(view)
    start = f"{tag(view)} " if tag(view) else ""
    errors = [(start + e.label, e.theirs, e.last, e.seeds, e.best, e.last_difference, e.best_difference) for e in rows]
    yield from columns((ERRORS, *errors))
    yield ""
    printed = any(check.printed for e in rows for check in (e.params, e.flops))
    whose = "Costs: the paper's, and ours as" if printed else "Costs, as"
    yield f"{whose} the records counted them (FLOPs of one image, by the paper's rule)"
    costs = [(start + e.label, *_cost(e.params), *_cost(e.flops)) for e in rows]
    yield from columns((COSTS if printed else OWN_COSTS, *costs), words=(0, 3, 6))
    memory = memory_text(view)
    if memory:
        yield ""
        yield from memory.splitlines()
    yield ""
    yield "Notes"
    for note in footnotes(view):
        yield from _fill(note)
    yield ""
    yield "Comparisons" + f" ({tag(view)})" * bool(tag(view))
    contrasts = compare(view)
    for note in (*note_comparisons(view, contrasts), *(conclude(each, decimals(view)) for each in contrasts)):
        yield from _fill(note)


def _cost(check: Check) -> tuple[str, str, str]:
    """The paper's cell, ours, and what the check says if there was one."""
    state = check.state if check.state in ("agrees", "slip", "differs") else ""
    if check.counted is None:
        return check.printed or "-", "-", state
    return check.printed or "-", check.text, state


def _fill(text: str, first: str = "- ", rest: str = "  ") -> list[str]:
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
