"""A table as Markdown: whole, and the short form of docs/results.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rkcnn.escape import escape_markdown
from rkcnn.report.claims.judge import list_verdicts
from rkcnn.report.claims.verdict import JudgedClaim
from rkcnn.report.costs import MEMORY_HEADS, NAMES, CostCheck, flops_rule
from rkcnn.report.report import TableReport
from rkcnn.report.results import ResultTable
from rkcnn.report.tables.cells import RowText, is_filled

LEFT = (
    "network",
    "costs",
    "data set",
    "data, recipe",
    "explicit",
    "implicit or refined",
    "RKCNN",
    "network of similar size",
    "network of the same norm",
)
"""The columns of text, which begin at the left; numbers end at the right."""


def table_markdown(part: TableReport, claims: Sequence[JudgedClaim] = ()) -> str:
    """Return a table with its notes and comparisons, and the claims given."""
    return "\n".join(_lines(part, claims)) + "\n"


def short_table(part: TableReport) -> str:
    """Return the rows that have results, with errors and parameters alone."""
    heads = ("network", "params", "paper", f"ours, {_best(part.results)}", "ours, last epoch", "n")
    shown = [text for text, row in zip(part.texts, part.results.rows, strict=True) if row.results or row.diverged]
    cells = [
        (_name(part, row), row.params.text, *map(_space, (row.printed, row.best, row.last)), row.seeds) for row in shown
    ]
    return "\n".join(table_lines(heads, cells))


def _lines(part: TableReport, claims: Sequence[JudgedClaim]) -> Iterator[str]:
    name, _, about = part.title.partition(": ")
    tag = part.results.tag
    yield f"# {name}"
    yield ""
    yield escape_markdown(f"{about[:1].upper()}{about[1:]}.")
    if part.preset_warning:
        yield ""
        yield f"**{part.preset_warning}**"
    yield ""
    ours = "" if part.results.of_any_runs else "ours, "
    errors = ("paper", f"{ours}last epoch", "n", f"{ours}{_best(part.results)}", "Δ last", "Δ best")
    heads = ("network", "params", f"FLOPs ({flops_rule(part.results)})", "costs", *errors, *MEMORY_HEADS)
    tagged = [f"{head} ({tag})" if tag and head.startswith("ours") else head for head in heads]
    yield from table_lines(tagged, [_cells(part, row) for row in part.texts])
    yield ""
    yield from (f"- {escape_markdown(note)}" for note in part.notes)
    sections = {
        "Comparisons": [*part.introduction, *part.conclusions],
        "The paper's claims": list(list_verdicts(claims)),
    }
    for head, lines in sections.items():
        if lines:
            yield ""
            yield f"## {head}" + f" ({tag})" * bool(tag)
            yield ""
            yield from (f"- {escape_markdown(line)}" for line in lines)


def _best(results: ResultTable) -> str:
    return f"best epoch (chosen on the {results.held_out} set)"


def _cells(part: TableReport, row: RowText) -> tuple[str, ...]:
    return (
        _name(part, row),
        row.params.text,
        row.flops.text,
        _costs(row.params, row.flops),
        _space(row.printed),
        _space(row.last),
        row.seeds,
        _space(row.best),
        row.last_difference,
        row.best_difference,
        *row.memory,
    )


def _name(part: TableReport, row: RowText) -> str:
    label = escape_markdown(row.label)
    return f"{part.results.tag} {label}" if part.results.tag else label


def _costs(*checks: CostCheck) -> str:
    """Write `agree`, or which of the two doesn't and how; `the paper's`, where nothing was counted."""
    states = {check.state for check in checks if check.state != "-"}
    if states == {"agrees"}:
        return "agree"
    if states <= {"not counted"}:
        return "the paper's" if states else "-"
    return ", ".join(_say_check(check) for check in checks if check.state != "-")


def _say_check(check: CostCheck) -> str:
    other = f" (paper {check.printed})" if check.state in ("misprint", "differs") else ""
    return f"{NAMES[check.column]}: {check.state}{other}"


def _space(text: str) -> str:
    """Write 0.29 (0.316 ± 0.033)."""
    return text.replace("(", " (").replace("±", " ± ").replace("*", "\\*")


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table; a column with nothing in it is left out."""
    kept = [i for i, column in enumerate(zip(*rows, strict=True)) if is_filled(column)]
    yield f"| {' | '.join(heads[i] for i in kept)} |"
    yield f"|{'|'.join('---' if heads[i] in LEFT else '--:' for i in kept)}|"
    for row in rows:
        yield f"| {' | '.join(row[i] for i in kept)} |"
