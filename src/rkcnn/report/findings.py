"""What code writes of docs/findings.md, docs/comparisons.md and docs/batch-norm.md: python -m rkcnn.report.findings.

The numbers and pictures are those of the published results, and of the tables `norms` and `statistics`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from rkcnn.disk import write_atomically
from rkcnn.evaluation.binomial import sampling_error
from rkcnn.model.spec import depends_on_data
from rkcnn.page_writer import run_writer
from rkcnn.record.memory import read_memories
from rkcnn.report.costs import find_footprint, shorten
from rkcnn.report.figures.frontier import find_frontier
from rkcnn.report.figures.style import render
from rkcnn.report.footnotes import note_images
from rkcnn.report.matched_norms import draw_norms, say_norms, write_norms
from rkcnn.report.order import find_order
from rkcnn.report.pairs import say_row, subtract
from rkcnn.report.published import SHOWN, TITLES, choose_headlines, has_step, name_recipe, name_table, report_published
from rkcnn.report.readme import check_markers, write_between
from rkcnn.report.report import Report, TableReport
from rkcnn.report.results import read_records
from rkcnn.report.row import Row
from rkcnn.report.sentences import join, percent, signed
from rkcnn.report.shared_norms import write_measured_norms, write_separate_norms, write_shared_norms
from rkcnn.report.similar_size import say_sizes, write_size
from rkcnn.report.statistics import pool_deviations
from rkcnn.report.tables.markdown import table_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE = Path("docs/findings.svg")
FRONTIER = "frontier-params"
NONE_YET = "No runs yet."
PAIRS = (  # of README rows: an explicit step, and one that is implicit or refines it, of the same width
    ("RK-Net (explicit)", "RK-Net (implicit)"),
    ("ODE-Net (explicit)", "ODE-Net (implicit)"),
    ("RKCNN-E", "RKCNN-I"),
    ("RKCNN-E", "RKCNN-R"),
)


def markers(name: str) -> tuple[str, str]:
    """Return what stands before and after a part of the page that is written by code."""
    return f"<!-- {name}: python -m rkcnn.report.findings writes this -->", f"<!-- /{name} -->"


def write_order(report: Report) -> str:
    """Return the table of how far our order of the networks is the paper's, at best epochs."""
    rows = []
    for part in report.tables:
        found = find_order(part.results)
        if found is None:
            continue
        shift = "-"
        if found.differences and part.results.way == "paper":
            error = stdev(found.differences) / sqrt(len(found.differences)) if len(found.differences) > 1 else None
            shift = signed(fmean(found.differences), part.results.decimals)
            shift += f" (standard error {percent(error, part.results.decimals)})" if error is not None else ""
        counts = (found.same, found.by_paper, found.by_ours, found.agreeing, found.by_both)
        told = ["-" if number is None else str(number) for number in counts]
        correlation = "-" if found.correlation is None else f"{found.correlation:.2f}"
        rows.append((name_table(part), str(found.networks), shift, correlation, str(found.pairs), *told))
    heads = ("data, recipe", "networks", "mean difference from the paper", "rank correlation", "pairs")
    by_one = ("told apart by the paper's numbers", "told apart by our runs", "of those, in the paper's order")
    return _table((*heads, "in the paper's order", *by_one, "told apart by both"), rows)


def write_noise(report: Report) -> str:
    """Return the table of what moves an error besides the network: the chosen epoch, the seed, the test images."""
    rows = []
    for part in report.tables:
        usual = (row for row in part.results.rows if has_step(row) and row.evaluations_of_a_norm == 1)
        found = [row for row in usual if row.all_finished]
        digits = part.results.decimals
        gains = [row.last.mean - row.best.mean for row in found if row.last and row.best]
        means = [row.last.mean for row in found if row.last]
        if not means or part.results.images is None:
            continue
        draw = sampling_error(fmean(means), part.results.images).se
        spread = pool_deviations([row.last for row in found if row.last])
        seed = percent(spread, digits) if spread is not None else "-"
        gained = f"{percent(fmean(gains), digits)} ({percent(min(gains), digits)} to {percent(max(gains), digits)})"
        between = f"{percent(min(means), digits)} to {percent(max(means), digits)}"
        runs = [result for row in found for result in row.results]
        best = f"{sum(result.error == result.error_best for result in runs)} of {len(runs)}"
        rows.append((name_table(part), gained, best, seed, percent(draw, digits), between))
    choosing = ("choosing the best epoch gains", "runs that are best after their last epoch")
    noise = ("one seed, standard deviation", "test images, standard error of one run")
    table = _table(("data, recipe", *choosing, *noise, "lowest to highest mean error"), rows)
    return "\n\n".join([table, *(note for part in report.tables for note in note_images(part.results))])


def write_cost(report: Report) -> str:
    """Return, for each data set, the networks that none beats in error without costing more; and the pictures."""
    lines = []
    for title, part in choose_headlines(report).items():
        rows = [row for row in part.results.rows if row.all_finished]
        for cost, name in (("params", "parameters"), ("flops", "FLOPs")):
            known = [(row, getattr(row, cost), row.last.mean) for row in rows if row.last and getattr(row, cost)]
            best = [known[i] for i in find_frontier([(amount, error) for _, amount, error in known])]
            digits = part.results.decimals
            named = [
                f"{row.label} ({shorten(amount, is_least=cost == 'flops' and depends_on_data(row.network))}; "
                f"{percent(error, digits)} %)"
                for row, amount, error in best
            ]
            if named:
                lines.append(f"- {title}, by {name}: {', '.join(named)}.")
        if part.figure(FRONTIER):
            lines.append(f"\n![{title}: error against parameters, with the frontier]({_picture(part.name).name})\n")
    return "\n".join(lines).rstrip() or NONE_YET


def write_apart(report: Report) -> str:
    """Return which networks of similar size, and of the same norm, are told apart; docs/comparisons.md has all."""
    said = {"Of similar size": say_sizes(report), "With the same norm": say_norms(report)}
    return (
        "\n".join(f"- {what}: {sentence[0].lower()}{sentence[1:]}" for what, sentence in said.items() if sentence)
        or NONE_YET
    )


def write_step(report: Report) -> str:
    """Return the table of what a step is worth: no step, a residual one, that of RKCNN-E and that of the reference."""
    rows = []
    for title, part in choose_headlines(report).items():
        control, residual, explicit = (_find(part, name) for name in ("Identity", "ResNet", "RKCNN-E"))
        reference = part.pairs[0].reference if part.pairs else None
        if control and residual and reference:
            for ours in filter(None, (explicit, reference)):
                errors = (say_row(part, row) for row in (control, residual, ours))
                steps = (control, residual), (residual, ours)
                gains = (f"{subtract(part, two, one)}: {_say_share(one, two)}" for one, two in steps)
                rows.append((title, *errors, *gains))
    heads = ("data set", "without any step", "ResNet, y + F(y)", "RKCNN")
    return _table((*heads, "ResNet minus no step", "RKCNN minus ResNet"), rows)


def _say_share(before: Row, after: Row) -> str:
    """Write `30 % fewer errors`."""
    change = 1 - fmean(after.errors) / fmean(before.errors)
    return f"{100 * abs(change):.0f} % {'fewer' if change >= 0 else 'more'} errors"


def write_implicit(report: Report) -> str:
    """Return the table of implicit and refined steps beside explicit ones of the same width, and what is missing."""
    rows = []
    missing = dict.fromkeys((title, name) for title in choose_headlines(report) for _, name in PAIRS)
    for part in report.tables:
        for names in PAIRS:
            one, two = (_find(part, name) for name in names)
            if one and two:
                errors = (say_row(part, row) for row in (one, two))
                rows.append((name_table(part), *errors, subtract(part, two, one)))
                missing.pop((TITLES[part.name], names[1]), None)
    absent = [f"{name} on {title} ({_say_why(report, title, name)})" for title, name in missing]
    table = _table(("data, recipe", "explicit", "implicit or refined", "the second minus the first"), rows)
    return f"{table}\n\nWithout such a pair so far: {', '.join(absent)}." if absent else table


def _say_why(report: Report, title: str, name: str) -> str:
    """Say why a data set has no pair with this network: it was not run, runs diverged, or its partner is missing."""
    rows = [row for part in report.tables if TITLES[part.name] == title for row in _rows(part, name)]
    lost = sum(len(row.diverged) for row in rows)
    if lost:
        return f"{lost} of {lost + sum(len(row.results) for row in rows)} runs diverged"
    return "its explicit partner is missing" if any(row.results for row in rows) else "not run yet"


def write_memory(report: Report) -> str:
    """Return the table of what the paper's column of memory can hold: the process, and what a network adds to it."""
    rows = []
    for title, part in choose_headlines(report).items():
        found = [find_footprint(part.results, row) for row in part.results.rows]
        printed = [each for each in found if each.printed is not None]
        names = ("printed", "driver", "above", "allocated")
        spans = [_span([value for each in printed if (value := getattr(each, name)) is not None]) for name in names]
        if any(span != "-" for span in spans[1:]):
            rows.append((title, str(len(printed)), *spans))
    heads = ("data set", "networks", "the paper's column", "our process, as the driver counts")
    return _table((*heads, "of it above Identity's", "torch's tensors and workspaces"), rows)


def write_open(report: Report) -> str:
    """Return the list of what is not run yet."""
    headlines = choose_headlines(report)
    lines = []
    for title, part in headlines.items():
        absent = [
            f"{row.label} ({row.missing} of {part.results.table.seeds} runs)" if row.results else row.label
            for row in part.results.rows
            if row.missing and part.results.table
        ]
        if absent:
            lines.append(f"- {title} by {name_recipe(part.results)}: {', '.join(absent)}.")
    others = [title for title in TITLES.values() if title not in headlines]
    if others:
        lines.append(f"- {join(others)}: every network.")
    return "\n".join(lines) or "Every network of the paper's tables has been run."


def _span(values: Sequence[float]) -> str:
    if not values:
        return "-"
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return f"{low} MiB" if low == high else f"{low} to {high} MiB"


def _rows(part: TableReport, name: str) -> list[Row]:
    """Return the row of a table that a line of the README stands for, in a list, empty if there is none."""
    return [row for row in part.results.rows if row.network in SHOWN[name]]


def _find(part: TableReport, name: str) -> Row | None:
    """Return the row of a table that a line of the README stands for, if all its runs ended."""
    return next((row for row in _rows(part, name) if row.all_finished), None)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(table_lines(heads, rows)) if rows else NONE_YET


def _picture(name: str) -> Path:
    return PICTURE.with_stem(f"{PICTURE.stem}-{name}")


WRITERS: dict[str, dict[str, Callable[[Report], str]]] = {
    "findings.md": {
        "order": write_order,
        "step": write_step,
        "cost": write_cost,
        "apart": write_apart,
        "separate": write_separate_norms,
        "measured": write_measured_norms,
        "implicit": write_implicit,
        "noise": write_noise,
        "memory": write_memory,
        "open": write_open,
    },
    "comparisons.md": {"size": write_size, "norms": write_norms},
    "batch-norm.md": {"shared": write_shared_norms},
}
"""What writes each part of each page of docs/, by its name in the markers."""


def draw_pictures(report: Report) -> dict[Path, Figure]:
    """Return every picture of these pages, by its path from where the README lies."""
    figures = {_picture(part.name): part.figure(FRONTIER) for part in choose_headlines(report).values()}
    figures[_picture("norms")] = draw_norms(report)
    return {path: figure for path, figure in figures.items() if figure is not None}


def write_pages(docs: str, folder: str) -> Iterator[str]:
    """Write every part of the pages between its markers, and the pictures beside; yield what could not be read."""
    pages = {Path(docs, name): writers for name, writers in WRITERS.items()}
    for page, writers in pages.items():
        for part in writers:
            check_markers(page, markers(part))
    records, unreadable = read_records(Path(folder))
    memories, unread = read_memories(Path(folder))
    yield from map(str, (*unreadable, *unread))
    report = report_published(records, memories)
    for path, figure in draw_pictures(report).items():
        write_atomically(Path(docs, path.name), render(figure, "svg"))
    for page, writers in pages.items():
        for part, write in writers.items():
            write_between(page, markers(part), write(report))


if __name__ == "__main__":
    sys.exit(run_writer(write_pages, sys.argv[1:], ("docs", "results")))
