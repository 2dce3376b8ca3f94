"""docs/results.md: the paper's claims with our verdicts, and each published table with what it shows and can't show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rkcnn.escape import escape_markdown
from rkcnn.record.tables import PRESETS, TABLES
from rkcnn.report.claims.verdict import JudgedClaim
from rkcnn.report.footnotes import note_control, note_disagreements, note_images, note_records, note_shared_norms
from rkcnn.report.machines import note_machines, note_versions
from rkcnn.report.published import (
    FOREST,
    NO_RUNS,
    TITLES,
    choose_headlines,
    has_step,
    introduce,
    name_recipe,
    picture_of,
    say_recipe,
)
from rkcnn.report.report import Report, TableReport
from rkcnn.report.results import Records, ResultTable, build_result_table, find_precisions
from rkcnn.report.sentences import Statement, count, title
from rkcnn.report.tables.markdown import short_table

WRITTEN = "<!-- rkcnn report --readme README.md writes this file from results/; a test says when it is stale. -->"
RECIPES = {"paper": "the paper's recipe", "fast": "the fast recipes"}


def write_results_page(report: Report, records: Records) -> str:
    """Return docs/results.md: the claims, each table, what it shows and what it can't, and the runs' origins."""
    parts = [WRITTEN, "# Results"]
    parts += [NO_RUNS] if not report.tables else [*_begin(report), *_list_tables(report), *_list_origins(report)]
    others = list(_list_others(report, records))
    if others:
        parts.append(f"Also in `results/`: {'; '.join(others)}.")
    return "\n\n".join(parts) + "\n"


def _begin(report: Report) -> Iterator[str]:
    yield introduce(choose_headlines(report))
    yield "## The paper's claims"
    yield (
        "Judged from our last epochs and, by the same rules, from the means, deviations and numbers of runs that the "
        'paper itself prints ([report.md](report.md) has the rules). "Undecided" says that so few runs can\'t tell: it '
        "neither supports a claim nor speaks against it."
    )
    ways = list(report.claims)
    heads = ["claim", *(f"our runs by {_name_way(way)}" for way in ways), "the paper's own numbers"]
    rows = zip(*report.claims.values(), strict=True)  # every way judges the same claims in the same order
    yield "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(_write_claim(judged) for judged in rows)])


def _name_way(way: str) -> str:
    preset, _, precision = way.partition(" in ")
    return " in ".join(filter(None, (RECIPES[preset], precision)))


def _write_claim(judged: tuple[JudgedClaim, ...]) -> str:
    caveats = dict.fromkeys(part for each in judged if each.caveat for part in each.caveat.split("; "))
    claim = judged[0].claim.short + (f" ({'; '.join(caveats)})" if caveats else "")
    return f"| {' | '.join((claim, *(each.heading for each in judged), judged[0].by_paper or '-'))} |"


def _list_tables(report: Report) -> Iterator[str]:
    for part in report.tables:
        yield from _describe(part)


def _describe(part: TableReport) -> Iterator[str]:
    results = part.results
    shown = replace(results, rows=tuple(row for row in results.rows if row.results))
    yield f"## {TITLES[part.name]} by {name_recipe(results)}"
    counted = _count_runs(results)
    if results.way == "paper":
        yield (
            f"{counted}, by {say_recipe(results)}. The paper's column and our best epoch give lowest (mean ± std) over "
            "runs, each at its best epoch, which is chosen on the test set; our last epoch gives mean ± std, and "
            "nothing was chosen."
        )
    else:
        yield (
            f"{counted}, by {say_recipe(results)}. The paper's errors are for orientation: ours are by another recipe, "
            "and so are not compared with them."
        )
    yield short_table(part)
    notes = [
        *(*note_images(results), *note_records(results), *note_disagreements(results)),
        *(*note_machines(results), *note_versions(results), *note_shared_norms(results), *note_control(shown)),
    ]
    if notes:
        yield "\n".join(f"- {escape_markdown(note)}" for note in notes)
    if part.figure(FOREST):
        reference = part.pairs[0].reference.label
        yield f"![Differences of error from {reference}, with their intervals]({picture_of(part).name})"
    findings = [_list(statement) for statement in part.findings]
    if not part.comparisons:
        findings.append(part.introduction[-1])
    yield "### What the runs show"
    yield "\n".join(f"- {line}" for line in findings)
    limits = [*part.limits, _say_absent(part)]
    if any(limits):
        yield "### What they can't show"
        yield "\n".join(f"- {line}" for line in limits if line)


def _count_runs(results: ResultTable) -> str:
    """Write `80 runs of 16 of the paper's 18 networks, and 5 of Identity`."""
    of_paper = replace(results, rows=tuple(row for row in results.rows if has_step(row)))
    ended = sum(bool(row.results or row.diverged) for row in of_paper.rows)
    counted = f"{count(of_paper.runs, 'run')} of {ended} of the paper's {len(of_paper.rows)} networks"
    control = results.runs - of_paper.runs
    return counted + f", and {control} of Identity" * bool(control)


def _list(statement: Statement) -> str:
    return statement.text + "".join(f"\n  - {word}: {networks}" for word, networks in statement.groups)


def _say_absent(part: TableReport) -> str:
    absent = [row.label for row in part.results.rows if not row.results and not row.diverged]
    return f"Not run yet: {', '.join(absent)}." if absent else ""


def _list_origins(report: Report) -> Iterator[str]:
    yield "## Code and machines"
    heads = (
        "| runs | rkcnn | commit | source | torch | Python | machine | engine |",
        "|--:|---|---|---|---|---|---|---|",
    )
    rows = ((str(each.runs), *map(escape_markdown, each[:-1])) for each in report.origins)
    yield "\n".join((*heads, *(f"| {' | '.join(row)} |" for row in rows)))


def _list_others(report: Report, records: Records) -> Iterator[str]:
    """Yield the other tables and presets that have runs which none before them has."""
    shown = {(part.name, part.results.way) for part in report.tables}
    listed: set[Path] = set()
    for name, table in TABLES.items():
        for preset, precision in ((p, q) for p in PRESETS for q in find_precisions(table, records, p)):
            results = build_result_table(table, records, preset, precision=precision)
            folders = {folder for row in results.rows for folder in row.folders}
            if (name, results.way) not in shown and folders - listed:
                runs = title(results).rpartition("; ")[2]
                other = ", not the paper's recipe" if results.tag else ""
                options = f"--preset {preset}{f' --precision {precision}' * bool(results.other_precision)}"
                yield f"{runs}{other} (`rkcnn report {name} {options} --from results`)"
            listed |= folders
