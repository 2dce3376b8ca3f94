"""A table for the terminal: errors, costs, notes, comparisons; and claims. 100 columns wide where names allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rkcnn.escape import escape_text
from rkcnn.report.claims.judge import list_verdicts
from rkcnn.report.claims.verdict import JudgedClaim
from rkcnn.report.costs import CostCheck, footprint_of, format_footprint, is_measured, memory_heading
from rkcnn.report.report import TableReport
from rkcnn.report.tables.cells import is_filled

WIDTH = 100
ERRORS = ("network", "paper", "last", "n", "best", "Δ last", "Δ best")
COSTS = ("network", "params", "our params", "", "FLOPs", "our FLOPs", "")
OWN_COSTS = ("network", "", "params", "", "", "FLOPs", "")  # of a table that the paper doesn't have
MEMORY = ("network", "paper", "driver", "− Identity", "reserved", "allocated")


def table_text(part: TableReport) -> str:
    """Return a table with its costs, memory, notes and comparisons."""
    return "".join(f"{escape_text(line).rstrip()}\n" for line in _lines(part))


def claims_text(claims: Sequence[JudgedClaim], way: str) -> str:
    """Return the verdicts on the paper's claims below a heading; nothing where nothing was judged."""
    heading = "The paper's claims" + f" ({way.upper()}: not the paper's recipe)" * (way != "paper")
    lines = [line for sentence in list_verdicts(claims) for line in _fill(sentence)]
    return "".join(f"{escape_text(line)}\n" for line in (heading, *lines)) if lines else ""


def memory_text(part: TableReport) -> str:
    """Return the memory of each row, and of Identity where it is no row; nothing where nothing was measured."""
    results = part.results
    if not is_measured(results):
        return ""
    start = "SMOKE " if results.preset == "smoke" else ""  # memory has no recipe, but smoke is marked everywhere
    lines = [(start + row.label, *row.memory) for row in part.texts]
    control = results.control
    if control and control.network not in {row.network for row in results.rows}:
        lines.append((start + control.network, *format_footprint(footprint_of(control, control))))
    heading = f"{memory_heading(results)} (MiB)"
    return "".join(f"{line.rstrip()}\n" for line in (heading, *align((MEMORY, *lines))))


def align(rows: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> Iterator[str]:
    """Yield rows in columns: those of `words` begin at the left, numbers end at the right, empty ones are left out."""
    rows = [tuple(map(escape_text, row)) for row in rows]
    found = list(zip(*rows, strict=True))
    widths = {i: max(map(len, column)) for i, column in enumerate(found) if is_filled(column[1:])}
    for row in rows:
        yield "  ".join(row[i].ljust(width) if i in words else row[i].rjust(width) for i, width in widths.items())


def _lines(part: TableReport) -> Iterator[str]:
    tag = part.results.tag
    yield from _fill(part.title, "", "  ")
    if part.preset_warning:
        yield from _fill(part.preset_warning, "", "  ")
    yield ""
    start = f"{tag} " if tag else ""
    yield f"Errors in percent; best is each run's best epoch, chosen on the {part.results.held_out} set"
    errors = [
        (start + row.label, row.printed, row.last, row.seeds, row.best, row.last_difference, row.best_difference)
        for row in part.texts
    ]
    yield from align((ERRORS, *errors))
    yield ""
    printed = any(check.printed for checks in part.checks for check in checks)
    whose = "Costs: the paper's, and ours as" if printed else "Costs, as"
    rule = "2 × MAC" if part.results.of_any_runs else "by the paper's rule"
    yield f"{whose} the records counted them (FLOPs of one image, {rule})"
    costs = [(start + row.label, *_cost(row.params), *_cost(row.flops)) for row in part.texts]
    yield from align((COSTS if printed else OWN_COSTS, *costs), words=(0, 3, 6))
    memory = memory_text(part)
    if memory:
        yield ""
        yield from memory.splitlines()
    yield ""
    yield "Notes"
    for note in part.notes:
        yield from _fill(note)
    yield ""
    yield "Comparisons" + f" ({tag})" * bool(tag)
    for note in (*part.introduction, *part.conclusions):
        yield from _fill(note)


def _cost(check: CostCheck) -> tuple[str, str, str]:
    """Return the paper's cell, ours, and the result of the check if there was one."""
    state = check.state if check.state in ("agrees", "misprint", "differs") else ""
    return check.printed or "-", "-" if check.counted is None else check.text, state


def _fill(text: str, first: str = "- ", rest: str = "  ") -> list[str]:
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
