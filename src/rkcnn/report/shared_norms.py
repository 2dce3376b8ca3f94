"""What it costs that evaluations of f share the running statistics of a batch norm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from rkcnn.record.tables import TABLES
from rkcnn.report.pairs import say_row, subtract
from rkcnn.report.published import SHOWN, TITLES, has_step, name_table
from rkcnn.report.report import Report
from rkcnn.report.results import ResultTable, build_result_table
from rkcnn.report.row import Row
from rkcnn.report.sentences import format_difference, percent
from rkcnn.report.similar_size import find_nearest
from rkcnn.report.statistics import paired
from rkcnn.report.tables.markdown import table_lines

NOT_RUN = "No network that shares a batch norm between evaluations is run yet."
NONE_MEASURED = "Of no run it is measured yet what it errs with a set for each evaluation."
NO_PAIRS = "No network was run with both kinds of running statistics yet."
EACH = ",statistics=each"


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
            measured = [found.error("each") for found in row.norm_statistics]
            numbers.append(percent(fmean(measured), digits) if measured else "-")
            lines.append((name_table(part), row.label, str(row.evaluations_of_a_norm), *numbers))
    heads = ("data, recipe", "network", "evaluations that share a norm", "training error", "test error", "difference")
    return "\n".join(table_lines((*heads, "test error, a set each"), lines)) if lines else NOT_RUN


def write_measured_norms(report: Report) -> str:
    """Return the table of what runs with shared statistics err with a set each, beside ResNet and RKCNN.

    RKCNN is the one with the most similar number of parameters.
    """
    lines = []
    for part in report.tables:
        finished = [row for row in part.results.rows if row.all_finished]
        for row in finished:
            other = with_a_set_each(row)
            if other is None:
                continue
            ours = [rival for rival in finished if rival.family.startswith("RKCNN")]
            residual = next((rival for rival in finished if rival.network in SHOWN["ResNet"]), None)
            rivals = (residual, find_nearest(row, ours))
            gaps = (f"{subtract(part, other, rival)}; {say_row(part, rival)}" if rival else "-" for rival in rivals)
            lines.append((name_table(part), say_row(part, row), say_row(part, other), *gaps))
    heads = ("data, recipe", "as it was run", "the same weights, a set each", "that minus ResNet")
    return "\n".join(table_lines((*heads, "that minus the RKCNN of similar size"), lines)) if lines else NONE_MEASURED


def with_a_set_each(row: Row) -> Row | None:
    """Return the row with the last epoch's errors that were measured with a set each; None if none was measured."""
    measured = {found.run: found.error("each") for found in row.norm_statistics}
    results = [replace(result, error=measured[result.run]) for result in row.results if result.run in measured]
    return replace(row, results=tuple(results)) if results else None


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
        shared = rows.get(network.removesuffix(EACH))
        if not network.endswith(EACH) or shared is None:
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
