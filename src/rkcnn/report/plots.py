"""All figures of a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rkcnn.report.bands import draw_bands
from rkcnn.report.forest import draw_forest
from rkcnn.report.frontier import COSTS, draw_frontier
from rkcnn.report.view import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure


STEMS = (*(f"frontier-{cost}" for cost in COSTS), "forest", "bands")


def draw_plots(view: View) -> dict[str, Figure]:
    """By the stem of their files; a figure that would be empty is left out."""
    figures = (*(draw_frontier(view, cost) for cost in COSTS), draw_forest(view), draw_bands(view))
    return {stem: figure for stem, figure in zip(STEMS, figures, strict=True) if figure is not None}
