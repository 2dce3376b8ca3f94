"""What it costs that evaluations of f share the running statistics of a batch norm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from rkcnn.record.errors_by_statistics import EACH, OF_THE_RUN, SHARED
from rkcnn.record.tables import TABLES
from rkcnn.report.costs import shorten
from rkcnn.report.pairs import say_row, subtract
from rkcnn.report.published import SHOWN, TITLES, has_step, name_table
from rkcnn.report.report import Report, TableReport
from rkcnn.report.results import ResultTable, build_result_table
from rkcnn.report.row import Row
from rkcnn.report.sentences import count, format_difference, percent
from rkcnn.report.similar_size import find_nearest
from rkcnn.report.statistics import paired
from rkcnn.report.tables.markdown import table_lines

NOT_RUN = "No network that shares a batch norm between evaluations is run yet."
NONE_MEASURED = "It is not measured yet what any run errs with a set for each evaluation."
NO_PAIRS = "No network was run with both kinds of running statistics yet."
OPTION = ",statistics=each"


def write_shared_norms(report: Report) -> str:
    """Return the table of all networks of the tables in which some share batch norms, those that share most first."""
    lines = []
    for part in report.tables:
        rows = [row for row in part.results.rows if row.all_finished and has_step(row)]
        if all(row.evaluations_of_a_norm == 1 for row in rows):
            continue
        digits = part.results.decimals
        for row in sorted(rows, key=lambda row: row.evaluations_of_a_norm, reverse=True):
            learned, tested = row.training_error, fmean(row.errors)
            numbers = [percent(error, digits) for error in (learned, tested, tested - learned)]
            measured = row.errors_with_a_set_each
            numbers.append(percent(fmean(measured), digits) if measured else "-")
            lines.append((name_table(part), row.label, str(row.evaluations_of_a_norm), *numbers))
    heads = ("data, recipe", "network", "evaluations that share a norm", "training error", "test error", "difference")
    return "\n".join(table_lines((*heads, "test error, a set each"), lines)) if lines else NOT_RUN


def write_measured_norms(report: Report) -> str:
    """Return the table of what runs with shared statistics err with other statistics, beside ResNet and RKCNN.

    RKCNN is the one with the most similar number of parameters. Both have the statistics of their runs.
    """
    lines = []
    for part in report.tables:
        finished = [row for row in part.results.rows if row.all_finished]
        for row in (row for row in finished if row.errors_with_a_set_each):
            ours = [rival for rival in finished if rival.family.startswith("RKCNN")]
            residual = next((rival for rival in finished if rival.network in SHOWN["ResNet"]), None)
            rivals = (residual, find_nearest(row, ours))
            means = [fmean(found.error(kind) for found in row.by_statistics) for kind in (OF_THE_RUN, SHARED, EACH)]
            numbers = (percent(mean, part.results.decimals) for mean in (fmean(row.errors), *means))
            runs = count(len(row.errors), "run")
            gaps = (_subtract(part, row, rival) if rival else "-" for rival in rivals)
            aside = ", ".join(filter(None, (shorten(row.params) if row.params else "", runs)))
            lines.append((name_table(part), f"{row.label} ({aside})", *numbers, *gaps))
    heads = ("data, recipe", "network", "as it was run", "in float32", "shared, taken anew", "a set each, taken anew")
    differences = ("the last minus ResNet", "the last minus the RKCNN of similar size")
    return "\n".join(table_lines((*heads, *differences), lines)) if lines else NONE_MEASURED


def _subtract(part: TableReport, row: Row, rival: Row) -> str:
    """Write the difference between what a network errs with a set each and what another one does as it was run."""
    results = [
        replace(result, error=error) for result, error in zip(row.results, row.errors_with_a_set_each, strict=True)
    ]
    return f"{subtract(part, replace(row, results=tuple(results)), rival)}; {say_row(part, rival)}"


class Both(NamedTuple):
    """A run with each kind of running statistics, of the same seed and so with the same weights."""

    network: str
    training_error: float
    shared: float
    each: float


def write_separate_norms(report: Report) -> str:
    """Return the table of networks that were run with both kinds of running statistics, seed by seed.

    A run with `statistics=each` and one without have the same weights if they have the same seed, so that a difference
    within a seed comes from the statistics alone.
    """
    lines = []
    for name, preset in ((name, preset) for name in ("norms", "statistics") for preset in ("paper", "fast")):
        results = build_result_table(TABLES[name], report.records, preset)
        runs = list(_pair_kinds(results))
        networks = dict.fromkeys(run.network for run in runs)
        lines += [_write_line(results, name, [run for run in runs if run.network == name]) for name in networks]
        if len(networks) > 1:
            lines.append(_write_line(results, "all of these", runs))
    heads = ("data, recipe", "network", "runs", "training error", "one set for all", "one set each")
    return "\n".join(table_lines((*heads, "the second minus the first"), lines)) if lines else NO_PAIRS


def _pair_kinds(results: ResultTable) -> Iterator[Both]:
    rows = {row.network: row for row in results.rows if row.all_finished}
    for network, row in rows.items():
        shared = rows.get(network.removesuffix(OPTION))
        if not network.endswith(OPTION) or shared is None:
            continue
        others = dict(zip((result.run.seed for result in shared.results), shared.errors, strict=True))
        for result, error in zip(row.results, row.errors, strict=True):
            if result.run.seed in others:
                learned = result.epochs[-1].training_error
                yield Both(shared.network, learned, others[result.run.seed], error)


def _write_line(results: ResultTable, name: str, runs: Sequence[Both]) -> tuple[str, ...]:
    """Write the line of these runs: mean errors, and the mean difference with Student's interval for pairs."""
    _, learned, shared, each = zip(*runs, strict=True)
    means = (percent(fmean(errors), results.decimals) for errors in (learned, shared, each))
    value, *interval = format_difference(paired(each, shared), results.decimals)
    difference = " ".join((value, *(f"({text})" for text in interval)))
    return f"{TITLES[results.data]}, {results.recipe.name}", name, str(len(runs)), *means, difference
