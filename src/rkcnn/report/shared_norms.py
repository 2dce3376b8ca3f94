"""What it costs that evaluations of f share the running statistics of a batch norm."""

from __future__ import annotations

from statistics import fmean

from rkcnn.record.tables import TABLES
from rkcnn.report.published import TITLES, has_step, name_table
from rkcnn.report.report import Report
from rkcnn.report.results import ResultTable, build_result_table
from rkcnn.report.row import Row
from rkcnn.report.sentences import format_difference, percent
from rkcnn.report.statistics import paired
from rkcnn.report.tables.markdown import table_lines

NOT_RUN = "No network that shares a batch norm between evaluations is run yet."
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
            errors = (learned, tested, tested - learned)
            numbers = (percent(error, digits) for error in errors)
            lines.append((name_table(part), row.label, str(row.evaluations_of_a_norm), *numbers))
    heads = ("data, recipe", "network", "evaluations that share a norm", "training error", "test error", "difference")
    return "\n".join(table_lines(heads, lines)) if lines else NOT_RUN


def write_separate_norms(report: Report) -> str:
    """Return the table of networks that were run with both kinds of running statistics, seed by seed.

    A run with `statistics=each` and one without have the same weights if they have the same seed, so that a difference
    within a seed comes from the statistics alone.
    """
    lines = []
    for name, preset in ((name, preset) for name in ("norms", "statistics") for preset in ("paper", "fast")):
        results = build_result_table(TABLES[name], report.records, preset)
        rows = {row.network: row for row in results.rows if row.all_finished}
        for network, each in rows.items():
            shared = rows.get(network.removesuffix(EACH))
            if network.endswith(EACH) and shared:
                lines += _compare_kinds(results, shared, each)
    heads = ("data, recipe", "network", "seeds", "training error", "one set for all", "one set each")
    return "\n".join(table_lines((*heads, "the second minus the first"), lines)) if lines else NO_PAIRS


def _compare_kinds(results: ResultTable, shared: Row, each: Row) -> list[tuple[str, ...]]:
    """Return the line of a network by the seeds that both kinds were run with; none if there is no such seed."""
    with_shared, with_each = (
        dict(zip((result.run.seed for result in row.results), row.errors, strict=True)) for row in (shared, each)
    )
    seeds = sorted(with_shared.keys() & with_each.keys())
    if not seeds:
        return []
    first, second = ([errors[seed] for seed in seeds] for errors in (with_shared, with_each))
    learned = fmean(result.epochs[-1].training_error for result in each.results if result.run.seed in seeds)
    means = (percent(error, results.decimals) for error in (learned, fmean(first), fmean(second)))
    value, *interval = format_difference(paired(second, first), results.decimals)
    difference = " ".join((value, *(f"({text})" for text in interval)))
    at = f"{TITLES[results.data]}, {results.recipe.name}"
    return [(at, shared.network, str(len(seeds)), *means, difference)]
