"""Networks of similar size: each RKCNN with the other networks whose numbers of parameters are nearest to its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rkcnn.report.pairs import find_apart, has_spread, say_apart, say_row, subtract
from rkcnn.report.published import has_step, name_table
from rkcnn.report.report import Report
from rkcnn.report.row import Row
from rkcnn.report.statistics import welch
from rkcnn.report.tables.markdown import table_lines

NOT_RUN = "No runs yet."
SIMILAR = 0.1  # by how much the parameters of two networks of similar size may differ, as a share of the larger


def pair_by_size(rows: Iterable[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield every RKCNN with the nearest network of another family, and every -I and -R with the nearest RKCNN-E.

    Networks without a step, and those of which runs diverged or are missing, are left out. Parameters alone choose.
    """
    known = [row for row in rows if row.all_finished and row.params and has_step(row)]
    ours = [row for row in known if row.family.startswith("RKCNN")]
    others = [row for row in known if not row.family.startswith("RKCNN")]
    explicit = [row for row in ours if row.family == "RKCNN-E"]
    for row in ours:
        for rivals in (others, [] if row in explicit else explicit):
            nearest = find_nearest(row, rivals)
            if nearest is not None:
                yield row, nearest


def find_nearest(row: Row, others: Sequence[Row]) -> Row | None:
    """Return the network with the most similar number of parameters, within SIMILAR; of equals the first."""

    def distance(other: Row) -> float:
        one, two = row.params or 0, other.params or 0
        return abs(one - two) / max(one, two)

    nearest = min(others, key=distance, default=None)
    return nearest if nearest is not None and distance(nearest) <= SIMILAR else None


def say_sizes(report: Report) -> str:
    """Say which networks of similar size are told apart after Holm's correction for all such pairs; else empty."""
    pairs = (pair for part in report.tables for pair in pair_by_size(part.results.rows) if has_spread(*pair))
    tested = [(pair, p) for pair in pairs if (p := welch(pair[0].errors, pair[1].errors).p) is not None]
    return say_apart(len(tested), find_apart(tested)) if tested else ""


def write_size(report: Report) -> str:
    """Return the table of each RKCNN beside the other network whose number of parameters is nearest, if it is near.

    A sentence below it says which pairs are told apart after Holm's correction for all of them.
    """
    rows = [
        (name_table(part), *(say_row(part, each) for each in pair), subtract(part, *pair))
        for part in report.tables
        for pair in pair_by_size(part.results.rows)
    ]
    if not rows:
        return NOT_RUN
    table = table_lines(("data, recipe", "RKCNN", "network of similar size", "the first minus the second"), rows)
    return "\n\n".join(filter(None, ("\n".join(table), say_sizes(report))))
