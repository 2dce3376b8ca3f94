"""The figures of a table; matplotlib is loaded when one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rkcnn.report.compare import Comparison
from rkcnn.report.figures.bands import draw_bands
from rkcnn.report.figures.forest import draw_forest
from rkcnn.report.figures.frontier import COSTS, Cost, draw_frontier
from rkcnn.report.results import ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Draw = Callable[[ResultTable, Sequence[Comparison]], "Figure | None"]


def _frontier(cost: Cost) -> Draw:
    return lambda results, _: draw_frontier(results, cost)


FIGURES: dict[str, Draw] = {
    **{f"frontier-{cost}": _frontier(cost) for cost in COSTS},
    "forest": draw_forest,
    "bands": lambda results, _: draw_bands(results),
}
"""The functions that draw a table's figures, by the stem of the file; they return None where there is too little."""
