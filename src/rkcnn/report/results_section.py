"""The README's results, from the records that are published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rkcnn.fit.recipe import recipe_of
from rkcnn.record.tables import PRESETS, TABLES
from rkcnn.report.compare import compare
from rkcnn.report.findings import Statement, say_shown
from rkcnn.report.footnotes import NORMS, note_control, note_sampling
from rkcnn.report.forest import draw_forest
from rkcnn.report.judged import judge_claims
from rkcnn.report.judgement import Judgement
from rkcnn.report.table_markdown import short_table
from rkcnn.report.view import Found, View, view_of
from rkcnn.report.words import count, note_comparisons, tag, title

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PICTURE = Path("docs/results.svg")  # from where the README lies


def draw_results(records: Found) -> Figure | None:
    """The picture that goes with the words; None where nothing can be compared yet."""
    seen = view_of(TABLES["mnist"], records, "paper")
    return draw_forest(seen) if compare(seen) else None


def write_results(records: Found) -> str:
    """The mnist table in short, what it shows and what it can't, the claims; or that there are no runs yet."""
    seen = view_of(TABLES["mnist"], records, "paper")
    parts = list(_describe(seen, records)) if not seen.empty else []
    if not parts:
        parts = ["No run of the paper's MNIST table by its own recipe has been published yet."]
    others = list(_list_others(records))
    if others:
        parts.append(f"Also in `results/`: {'; '.join(others)}.")
    return "\n\n".join(parts)


def _describe(view: View, records: Found) -> Iterator[str]:
    yield _introduce(view)
    yield short_table(view)
    contrasts = compare(view)
    if contrasts:
        yield f"![Differences of error from {contrasts[0].reference.label}, with their intervals]({PICTURE.as_posix()})"
    shown = [_list(statement) for statement in say_shown(view, contrasts)]
    if not contrasts:
        *_, why = note_comparisons(view, contrasts)
        shown.append(why)
    limits = [note_sampling(view), NORMS, _say_absent(view)]
    for head, lines in (("What they show:", shown), ("What they can't:", limits)):
        yield head
        yield "\n".join(f"- {line}" for line in lines if line)
    yield (
        "The paper's claims, judged from our last epochs and, by the same rules, from the means, deviations and "
        "numbers of runs that the paper itself prints ([docs/report.md](docs/report.md) has the rules). "
        '"Not separable" says that so few runs can\'t tell: it neither supports a claim nor speaks against it.'
    )
    heads = ("| claim | our runs | the paper's own numbers |", "|---|---|---|")
    yield "\n".join((*heads, *map(_say_claim, judge_claims(records, view.preset))))


def _introduce(view: View) -> str:
    recipe = recipe_of(view.table.recipe_at(view.preset))
    results = [result for row in view.rows for result in (*row.results, *row.diverged)]
    machines = sorted({result.machine.get("gpu") or "CPUs" for result in results})
    rows = sum(bool(row.results or row.diverged) for row in view.rows)
    return (
        f"{count(len(results), 'run')} of {rows} of the {len(view.rows)} rows of the MNIST table by the paper's recipe "
        f'({recipe.epochs} epochs), on {", ".join(machines)}. Errors in percent; the paper and "best epoch" give '
        "lowest (mean ± std) of each run's best epoch on the test set (as the paper's public code counts), "
        '"last epoch" mean ± std, nothing chosen. '
        f"{' '.join(note_control(replace(view, rows=tuple(row for row in view.rows if row.results))))}"
    ).rstrip()


def _list(statement: Statement) -> str:
    return statement.text + "".join(f"\n  - {word}: {networks}" for word, networks in statement.groups)


def _say_claim(judgement: Judgement) -> str:
    caveat = f" ({judgement.claim.caveat})" if judgement.claim.caveat and judgement.findings else ""
    return f"| {judgement.claim.short}{caveat} | {judgement.heading} | {judgement.theirs or '-'} |"


def _say_absent(view: View) -> str:
    absent = [row.label for row in view.rows if not row.results and not row.diverged]
    return f"Not run yet: {', '.join(absent)}." if absent else ""


def _list_others(records: Found) -> Iterator[str]:
    """What else has runs that nothing before it has, by table and recipe."""
    told: set[Path] = set()
    for name in TABLES:
        for preset in PRESETS:
            seen = view_of(TABLES[name], records, preset)
            folders = {folder for row in seen.rows for folder in row.folders}
            if (name, preset) != ("mnist", "paper") and folders - told:
                runs = title(seen).rpartition("; ")[2]
                other = ", not the paper's recipe" if tag(seen) else ""
                yield f"{runs}{other} (`rkcnn report {name} --recipe {preset} --from results`)"
            told |= folders
