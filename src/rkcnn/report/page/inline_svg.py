"""Figures as parts of a page: their colours follow the page's, and their points show what they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rkcnn.model import drawing
from rkcnn.model.drawing import Look
from rkcnn.report.figures.style import render

if TYPE_CHECKING:
    import numpy as np
    from markupsafe import Markup
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

COLOURS = ("blue", "orange", "green", "grey", "sky", "amber", "pink", "wine", "purple", "olive", "brown")
_VARIABLES = {
    **{getattr(drawing, name.upper()).lower(): f"var(--{name})" for name in COLOURS},
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#b0b0b0": "var(--rule)",
}


def follow_page(colour: str) -> str:
    """Return a figure's colour as the page's variable for it, which dark mode changes."""
    return _VARIABLES.get(colour.lower(), colour)


def inline_svg(figure: Figure, prefix: str, title: str, families: Mapping[int, str]) -> Markup:
    """Return the figure's SVG for a page that holds several; `families` gives the family of each row by number.

    Ids begin with `prefix`, colours are the page's variables, and text has no font of its own. What is drawn of a row
    (gid point-3, name-3, bar-3, bar-3-line, panel-3) carries data-row and data-family; points can be focused.
    """
    from markupsafe import Markup, escape

    svg = render(figure, "svg", transparent=True).decode()
    svg = svg[svg.index("<svg") :]
    # Matplotlib's style rule would hold for the whole page here; page.css has it for plots alone.
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r" font-family: [^;\"]*;?", "", svg)
    svg = re.sub(r"<[^>]+>", _shorten, svg)
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda colour: follow_page(colour[0]), svg)
    svg = re.sub(r"\b(id=\"|url\(#|href=\"#)", rf"\1{prefix}-", svg.replace("xlink:href", "href"))

    def annotate(match: re.Match[str]) -> str:
        kind, row = match[1], int(match[2])
        focus = ' tabindex="0"' if kind == "point" else ""
        return f'{match[0]} class="{kind}" data-row="{row}" data-family="{escape(families[row])}"{focus}'

    svg = re.sub(rf"id=\"{prefix}-(point|name|bar|panel)-(\d+)(?:-\w+)?\"", annotate, svg)
    box = re.search(r"viewBox=\"0 0 ([\d.]+) [\d.]+\"", svg)
    assert box
    attributes = (
        f'class="plot" role="group" aria-label="{escape(title)}" style="max-width: {1.6 * float(box[1]):.0f}px"'
    )
    return Markup(f"<svg {box[0]} {attributes}>" + svg[svg.index(">") + 1 :])


def inline_marker(family: Look) -> Markup:
    """Return a family's marker as the figures draw it, the size of a letter."""
    import numpy as np
    from markupsafe import Markup
    from matplotlib.markers import MarkerStyle
    from matplotlib.transforms import Affine2D

    marker = MarkerStyle(family.marker)
    path = marker.get_path().transformed(marker.get_transform() + Affine2D().scale(100, -100))  # curves become lines
    (polygon,) = path.to_polygons()
    corners = np.asarray(polygon, np.float64)
    points = " ".join(f"{x:.0f},{y:.0f}" for x, y in corners)
    box = f"{corners[:, 0].min():.0f} {corners[:, 1].min():.0f} {_span(corners[:, 0])} {_span(corners[:, 1])}"
    drawn = f'<polygon points="{points}" fill="{follow_page(family.colour)}"/>'
    return Markup(f'<svg class="marker" viewBox="{box}" aria-hidden="true">{drawn}</svg>')


def _span(values: NDArray[np.float64]) -> str:
    return f"{values.max() - values.min():.0f}"


def _shorten(tag: re.Match[str]) -> str:
    """Round coordinates to 0.01 points, which halves the bytes of a figure; text is outside of tags and stays."""
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", tag[0])
