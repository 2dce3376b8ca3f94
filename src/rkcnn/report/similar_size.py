"""Networks of similar size: each RKCNN with the other networks whose numbers of parameters are nearest to its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rkcnn.report.published import has_step
from rkcnn.report.row import Row

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
