"""The published results: the short part of README.md, and docs/results.md with the claims and the statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rkcnn.escape import escape_markdown
from rkcnn.record.tables import PRESETS, TABLES
from rkcnn.report.claims.claims import JudgedClaim
from rkcnn.report.footnotes import NORMS, note_control, note_records, note_sampling
from rkcnn.report.report import Report, TableReport, build_report
from rkcnn.report.results import CORRECTED, Records, build_result_table, find_precisions
from rkcnn.report.sentences import (
    Statement,
    count,
    count_outcomes,
    find_agreement,
    percent,
    say_paper_counts,
    signed,
    title,
)
from rkcnn.report.tables.markdown import short_table

PAGE = Path("docs/results.md")  # from where the README lies
PICTURE = Path("docs/results.svg")
FIGURE = "forest"
NO_RUNS = "No run of the paper's MNIST table by its own recipe has been published yet."
WRITTEN = "<!-- rkcnn report --readme README.md writes this file from results/; a test says when it is stale. -->"

README_ROWS = (
    *("RKCNN-R-2@k=32", "RKCNN-I-2@k=32", "RKCNN-E-2@k=32", "Identity@k=32", "ResNet@k=32", "CliqueNet-2@k=32"),
    *("DenseNet-2@k=32", "RKNet-rk4_38@k=32", "RKNN-rk4_38@k=32", "ResNet-bottleneck@k=32", "ODENet-ab@k=32"),
    *("ODENet-abm@k=32", "RKNet-radau3@k=32"),
)
"""The rows that README.md shows, the first ten of those that have results."""
MOST_ROWS = 10


def report_published(records: Records) -> Report:
    """Build the report that the README and docs/results.md show: the MNIST table by the paper's recipe."""
    return build_report([build_result_table(TABLES["mnist"], records, "paper")], records)


def write_readme_part(report: Report) -> str:
    """Return the README's results: up to ten rows, one figure, three bullets and a link to all the rest."""
    (part,) = report.tables
    if part.results.empty:
        return NO_RUNS
    run = [row for row in part.results.rows if row.results or row.diverged]
    specs = [spec for spec in README_ROWS if spec in {row.network for row in run}][:MOST_ROWS]
    more = f", the other {count(len(run) - len(specs), 'network')}" if len(run) > len(specs) else ""
    link = f"[{PAGE.as_posix()}]({PAGE.as_posix()})"
    notes = [escape_markdown(note) for note in note_records(part.results) if CORRECTED not in note]
    lines = [_introduce(part), short_table(part, specs), *notes]
    if part.figure(FIGURE):
        lines.append(_show_figure(part, PICTURE.as_posix()))
    lines.append("\n".join(f"- {line}" for line in _list_bullets(part)))
    lines.append(f"All comparisons{more} and the paper's claims with our verdicts are in {link}.")
    return "\n\n".join(lines)


def write_results_page(report: Report, records: Records) -> str:
    """Return docs/results.md: the claims, the whole table, what it shows and what it can't, and the runs' origins."""
    (part,) = report.tables
    parts = [WRITTEN, "# Results"]
    parts += [NO_RUNS] if part.results.empty else _describe(report, part)
    others = list(_list_others(records))
    if others:
        parts.append(f"Also in `results/`: {'; '.join(others)}.")
    return "\n\n".join(parts) + "\n"


def _introduce(part: TableReport) -> str:
    results = part.results
    ended = [result for row in results.rows for result in (*row.results, *row.diverged)]
    machines = sorted({escape_markdown(result.machine.get("gpu") or "CPUs") for result in ended})
    rows = sum(bool(row.results or row.diverged) for row in results.rows)
    return (
        f"{count(results.runs, 'run')} of {rows} of the {len(results.rows)} networks of the MNIST table by the paper's "
        f"recipe ({results.recipe.epochs} epochs), on {', '.join(machines)}. Errors are in percent. The paper's column "
        "and our best epoch give lowest (mean ± std) over runs, each at its best epoch, which is chosen on the test "
        "set; our last epoch gives mean ± std, and nothing was chosen."
    )


def _show_figure(part: TableReport, path: str) -> str:
    return f"![Differences of error from {part.pairs[0].reference.label}, with their intervals]({path})"


def _list_bullets(part: TableReport) -> Iterator[str]:
    """Yield what a reader of the README should take away: against the paper, among the networks, and the limits."""
    results, digits = part.results, part.results.decimals
    agreement = find_agreement(results)
    if agreement:
        low, high = (signed(value, digits) for value in agreement.differences)
        apart = ", ".join(row.label for row, _ in agreement.apart) or "none of them"
        yield (
            f"At best epochs our means are {low} to {high} points from the paper's over "
            f"{count(agreement.tested, 'network')}; Welch's test with Holm's correction separates {apart}."
        )
    if not part.comparisons:
        yield part.coverage
        return
    _, _, level = count_outcomes(part.comparisons)
    more, less = (_count_named(part, worse) for worse in (True, False))
    yield (
        f"After the last epoch, of {len(part.comparisons)} networks {more} err more than "
        f"{part.comparisons[0].reference.label} and {less} less; {level or 'none'} can't be told from it with so few "
        "seeds."
    )
    errors = [each.sampling.se for each in part.comparisons if each.sampling]
    yield (
        f"A difference of two networks has a standard error of up to ±{percent(max(errors), 3)} points from the draw "
        f"of the {results.images:,} test images, so a small one may reverse on another test set; and RKCNN, DenseNet "
        "and CliqueNet use batch norm here where the others use group norm."
    )


def _count_named(part: TableReport, worse: bool) -> str:
    """Write `2 (ResNet, RKNN)`: the networks that err more than the reference, or less, or `none`."""
    found = [each.row.label for each in part.comparisons if each.separable and (each.difference.value > 0) == worse]
    return f"{len(found)} ({', '.join(found)})" if found else "none"


def _describe(report: Report, part: TableReport) -> Iterator[str]:
    results = part.results
    shown = replace(results, rows=tuple(row for row in results.rows if row.results))
    yield f"{_introduce(part)} That the paper counts best epochs on MNIST is {say_paper_counts(results)}."
    yield "## The paper's claims"
    yield (
        "Judged from our last epochs and, by the same rules, from the means, deviations and numbers of runs that the "
        'paper itself prints ([report.md](report.md) has the rules). "Undecided" says that so few runs can\'t tell: it '
        "neither supports a claim nor speaks against it."
    )
    heads = ("| claim | our runs | the paper's own numbers |", "|---|---|---|")
    yield "\n".join((*heads, *map(_write_claim, report.claims.get("paper", ()))))
    yield "## Errors on MNIST"
    yield short_table(part)
    notes = [*note_records(results), *note_control(shown)]
    if notes:
        yield "\n".join(f"- {escape_markdown(note)}" for note in notes)
    if part.figure(FIGURE):
        yield _show_figure(part, PICTURE.name)
    findings = [_list(statement) for statement in part.findings]
    if not part.comparisons:
        findings.append(part.introduction[-1])
    yield "### What the runs show"
    yield "\n".join(f"- {line}" for line in findings)
    limits = [note_sampling(results, part.comparisons), NORMS, _say_absent(part)]
    yield "### What they can't show"
    yield "\n".join(f"- {line}" for line in limits if line)
    yield "## Code and machines"
    heads = (
        "| runs | rkcnn | commit | source | torch | Python | machine | engine |",
        "|--:|---|---|---|---|---|---|---|",
    )
    rows = ((str(each.runs), *map(escape_markdown, each[:-1])) for each in report.origins)
    yield "\n".join((*heads, *(f"| {' | '.join(row)} |" for row in rows)))


def _list(statement: Statement) -> str:
    return statement.text + "".join(f"\n  - {word}: {networks}" for word, networks in statement.groups)


def _write_claim(judged: JudgedClaim) -> str:
    caveat = f" ({judged.caveat})" if judged.caveat else ""
    return f"| {judged.claim.short}{caveat} | {judged.heading} | {judged.by_paper or '-'} |"


def _say_absent(part: TableReport) -> str:
    absent = [row.label for row in part.results.rows if not row.results and not row.diverged]
    return f"Not run yet: {', '.join(absent)}." if absent else ""


def _list_others(records: Records) -> Iterator[str]:
    """Yield the other tables and presets that have runs which none before them has."""
    listed: set[Path] = set()
    for name, table in TABLES.items():
        for preset, precision in ((p, q) for p in PRESETS for q in find_precisions(table, records, p)):
            results = build_result_table(table, records, preset, precision=precision)
            folders = {folder for row in results.rows for folder in row.folders}
            if (name, results.way) != ("mnist", "paper") and folders - listed:
                runs = title(results).rpartition("; ")[2]
                other = ", not the paper's recipe" if results.tag else ""
                options = f"--preset {preset}{f' --precision {precision}' * bool(results.other_precision)}"
                yield f"{runs}{other} (`rkcnn report {name} {options} --from results`)"
            listed |= folders
