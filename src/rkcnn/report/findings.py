"""The numbers and pictures of docs/findings.md, from the published results: python -m rkcnn.report.findings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from rkcnn.disk import write_atomically
from rkcnn.evaluation.binomial import sampling_error
from rkcnn.page_writer import run_writer
from rkcnn.record.memory import read_memories
from rkcnn.report.costs import find_footprint
from rkcnn.report.figures.frontier import find_frontier
from rkcnn.report.figures.style import render
from rkcnn.report.paper import printed_sample
from rkcnn.report.published import TITLES, choose_headlines, report_published
from rkcnn.report.readme import check_markers, write_between
from rkcnn.report.report import Report, TableReport
from rkcnn.report.results import Row, read_records
from rkcnn.report.sentences import percent, signed
from rkcnn.report.statistics import Difference, correct_by_holm, is_significant, welch, welch_from_samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = "docs/findings.md"
FRONTIER = "frontier-params"
STEPS = (  # kinds of step of which the second refines, or is implicit where the first is explicit
    ("RKNet-rk4_38@", "RKNet-radau3@"),
    ("ODENet-ab@", "ODENet-abm@"),
    ("RKCNN-E-", "RKCNN-I-"),
    ("RKCNN-E-", "RKCNN-R-"),
)


def markers(name: str) -> tuple[str, str]:
    """Return what stands before and after a part of the page that is written by code."""
    return f"<!-- {name}: python -m rkcnn.report.findings writes this -->", f"<!-- /{name} -->"


class Order(NamedTuple):
    """How many pairs of networks stand in the paper's order, and how many of them can be told apart."""

    networks: int
    pairs: int
    by_paper: int  # pairs that the paper's own numbers tell apart
    by_ours: int  # pairs that our runs tell apart
    agreeing: int  # of those, the ones in the paper's order


def find_order(part: TableReport) -> Order:
    """Compare every two networks of a table, by Welch's test with Holm's correction on either side."""
    rows = [row for row in part.results.rows if row.all_finished and row.printed_mean is not None]
    pairs = list(combinations(rows, 2))
    ours = [welch(one.errors, two.errors) if _many(one, two) else None for one, two in pairs]
    samples = [(printed_sample(one.printed), printed_sample(two.printed)) for one, two in pairs]
    theirs = [welch_from_samples(one, two) if one and two else None for one, two in samples]
    apart = _tell_apart(ours)
    agreeing = 0
    for (one, two), found, is_apart in zip(pairs, ours, apart, strict=True):
        if is_apart and found and one.printed_mean is not None and two.printed_mean is not None:
            agreeing += (one.printed_mean - two.printed_mean) * found.value > 0
    return Order(len(rows), len(pairs), sum(_tell_apart(theirs)), sum(apart), agreeing)


def _many(one: Row, two: Row) -> bool:
    return min(len(one.errors), len(two.errors)) > 1


def _tell_apart(differences: Sequence[Difference | None]) -> list[bool]:
    """Return of each difference whether it is one after Holm's correction for all that have a p."""
    corrected = iter(correct_by_holm([each.p for each in differences if each and each.p is not None]))
    return [each is not None and each.p is not None and is_significant(next(corrected)) for each in differences]


def write_order(report: Report) -> str:
    """Return the table of pairs: how often our order of two networks is the paper's."""
    rows = []
    for part in report.tables:
        found = find_order(part)
        counts = (found.networks, found.pairs, found.by_paper, found.by_ours, found.agreeing)
        rows.append((_name(part), *map(str, counts)))
    heads = ("trained on", "networks", "pairs", "told apart by the paper's numbers", "told apart by our runs")
    return _table((*heads, "of those, in the paper's order"), rows)


def write_noise(report: Report) -> str:
    """Return the table of what moves an error besides the network: the chosen epoch, the seed, the test images."""
    rows = []
    for part in report.tables:
        found = [row for row in part.results.rows if row.last and row.best and row.all_finished]
        digits = part.results.decimals
        gains = [row.last.mean - row.best.mean for row in found if row.last and row.best]
        spreads = [row.last.std for row in found if row.last and row.last.std is not None]
        means = [row.last.mean for row in found if row.last and row.family != "Identity"]
        if not means or part.results.images is None:
            continue
        draw = sampling_error(fmean(means), part.results.images).se
        spread = percent(sqrt(fmean(value * value for value in spreads)), digits) if spreads else "-"
        gained = f"{percent(fmean(gains), digits)} ({percent(min(gains), digits)} to {percent(max(gains), digits)})"
        between = f"{percent(min(means), digits)} to {percent(max(means), digits)}"
        rows.append((_name(part), gained, spread, percent(draw, digits), between))
    heads = ("trained on", "choosing the best epoch gains", "one seed, standard deviation")
    return _table((*heads, "test images, standard error", "networks with a step err"), rows)


def write_cost(report: Report) -> str:
    """Return, for each data set, the networks that none beats in error without costing more; and the pictures."""
    lines = []
    for title, part in choose_headlines(report).items():
        rows = [row for row in part.results.rows if row.last and row.all_finished]
        for cost, name in (("params", "parameters"), ("flops", "FLOPs")):
            known = [row for row in rows if getattr(row, cost)]
            best = find_frontier([(getattr(row, cost), row.last.mean) for row in known if row.last])
            named = [_say_point(part, known[i], getattr(known[i], cost)) for i in best]
            lines.append(f"- {title}, by {name}: {', '.join(named)}.")
        if part.figure(FRONTIER):
            lines.append(f"\n![{title}: error against parameters, with the frontier]({_picture(part).name})\n")
    return "\n".join(lines).rstrip()


def _say_point(part: TableReport, row: Row, cost: float) -> str:
    assert row.last
    return f"{row.label} ({_short(cost)}; {percent(row.last.mean, part.results.decimals)} %)"


def _short(number: float) -> str:
    """Write 31.0 K, 1.93 M, 0.86 G."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if number >= unit:
            return f"{number / unit:.3g} {letter}"
    return f"{number:g}"


def write_step(report: Report) -> str:
    """Return the table of what a step is worth: the network without any, with a residual one, with the reference's."""
    rows = []
    for title, part in choose_headlines(report).items():
        control, residual = (_find(part, name) for name in ("Identity@", "ResNet@"))
        reference = part.pairs[0].reference if part.pairs else None
        if not (control and residual and reference and reference.all_finished):
            continue
        errors = (_say_row(part, row) for row in (control, residual, reference))
        first, second = _say_difference(part, residual, control), _say_difference(part, reference, residual)
        rows.append((title, *errors, first, second))
    if not rows:
        return "Not run yet."
    heads = ("trained on", "without any step", "ResNet, y + F(y)", "RKCNN")
    return _table((*heads, "ResNet minus no step", "RKCNN minus ResNet"), rows)


def write_implicit(report: Report) -> str:
    """Return the table of implicit and refined steps beside explicit ones, and what was not run yet."""
    rows = []
    missing = dict.fromkeys((title, name) for title in choose_headlines(report) for _, name in STEPS)
    for part in report.tables:
        for names in STEPS:
            one, two = (_find(part, name) for name in names)
            if one and two:
                errors = (_say_row(part, row) for row in (one, two))
                rows.append((_name(part), one.label, two.label, *errors, _say_difference(part, two, one)))
                missing.pop((TITLES[part.name], names[1]), None)
    absent = ", ".join(f"{name.rstrip('@-')} on {title}" for title, name in missing)
    heads = ("trained on", "explicit", "implicit or refined", "explicit, error", "implicit or refined, error")
    return _table((*heads, "difference"), rows) + f"\n\nNot run yet beside an explicit one: {absent}." * bool(absent)


def write_memory(report: Report) -> str:
    """Return the table of what the paper's column of memory can hold: the process, and what a network adds to it."""
    rows = []
    for title, part in choose_headlines(report).items():
        found = [find_footprint(part.results, row) for row in part.results.rows]
        columns = [[getattr(each, name) for each in found] for name in ("printed", "driver", "above", "allocated")]
        rows.append((title, *(_span([value for value in column if value is not None]) for column in columns)))
    heads = ("trained on", "the paper's column", "our process, as the driver counts")
    return _table((*heads, "of it above Identity's", "tensors"), rows)


def _span(values: Sequence[float]) -> str:
    if not values:
        return "-"
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return f"{low} MiB" if low == high else f"{low} to {high} MiB"


def _find(part: TableReport, name: str) -> Row | None:
    """Return the widest network whose name begins so, if its runs ended."""
    rows = [row for row in part.results.rows if row.network.startswith(name) and row.all_finished]
    return max(rows, key=lambda row: row.params or 0, default=None)


def _say_row(part: TableReport, row: Row) -> str:
    """Write 0.420 % (52.2 K parameters)."""
    assert row.last
    size = f" ({_short(row.params)} parameters)" if row.params else ""
    return f"{percent(row.last.mean, part.results.decimals)} %{size}"


def _say_difference(part: TableReport, row: Row, other: Row) -> str:
    """Write -0.178, with Welch's interval where there are two runs or more on both sides."""
    digits = part.results.decimals
    if not _many(row, other):
        return signed(fmean(row.errors) - fmean(other.errors), digits)
    found = welch(row.errors, other.errors)
    if found.interval is None:
        return signed(found.value, digits)
    low, high = (signed(end, digits) for end in found.interval)
    return f"{signed(found.value, digits)} ({low} to {high})"


def _name(part: TableReport) -> str:
    """Write CIFAR-10, fast-cifar."""
    precision = f" in {part.results.other_precision}" * bool(part.results.other_precision)
    return f"{TITLES[part.name]}, {part.results.recipe.name}{precision}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = (f"| {' | '.join(row)} |" for row in (heads, *rows))
    first, *others = lines
    return "\n".join((first, f"|---|{'--:|' * (len(heads) - 1)}", *others))


def _picture(part: TableReport) -> Path:
    return Path(PAGE).with_name(f"findings-{part.name}.svg")


WRITERS: dict[str, Callable[[Report], str]] = {
    "order": write_order,
    "noise": write_noise,
    "cost": write_cost,
    "step": write_step,
    "implicit": write_implicit,
    "memory": write_memory,
}
"""What writes each part of the page, by its name in the markers."""


def write_page(name: str, folder: str) -> Iterator[str]:
    """Write every part of the page between its markers, and the pictures beside it; yield what could not be read."""
    page = Path(name)
    for part in WRITERS:
        check_markers(page, markers(part))
    records, unreadable = read_records(Path(folder))
    memories, unread = read_memories(Path(folder))
    yield from map(str, (*unreadable, *unread))
    report = report_published(records, memories)
    for path, figure in draw_pictures(report).items():
        write_atomically(page.with_name(path.name), render(figure, "svg"))
    for part, write in WRITERS.items():
        write_between(page, markers(part), write(report))


def draw_pictures(report: Report) -> dict[Path, Figure]:
    """Return the picture of cost against error of each data set, by its path from where the README lies."""
    figures = {_picture(part): part.figure(FRONTIER) for part in choose_headlines(report).values()}
    return {path: figure for path, figure in figures.items() if figure is not None}


if __name__ == "__main__":
    sys.exit(run_writer(write_page, sys.argv[1:], (PAGE, "results")))
