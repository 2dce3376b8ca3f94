"""Training error beside test error where evaluations of f share the running statistics of a batch norm."""

from __future__ import annotations

from statistics import fmean

from rkcnn.report.published import has_step, name_table
from rkcnn.report.report import Report
from rkcnn.report.sentences import percent
from rkcnn.report.tables.markdown import table_lines

NOT_RUN = "No network that shares a batch norm between evaluations is run yet."


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
