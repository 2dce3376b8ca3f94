"""Writes a report as one HTML file: the paper's claims, tables, figures, and where the records come from.

Figures stand in the page as SVG, in colours that follow its style.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rkcnn import __version__
from rkcnn.disk import write_atomically
from rkcnn.error import InputError
from rkcnn.escape import escape_text
from rkcnn.model import drawing
from rkcnn.model.drawing import Look
from rkcnn.report.costs import memory_heading
from rkcnn.report.figures.style import caption_of, look_of, render
from rkcnn.report.page.table import lay_out, lay_out_memory
from rkcnn.report.report import Report, TableReport
from rkcnn.report.sentences import join

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


def write_page(report: Report, path: Path) -> Path:
    """Write one HTML file that needs nothing else, neither files nor a network, and return its path."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    if not report.tables:
        raise InputError("no table given for the page; name one, as mnist")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.finalize = _escape_unseen
    environment.filters["code"] = _mark_code
    template = environment.from_string(_read("page.html.jinja"))
    parts = [_describe(part) for part in report.tables]
    text = template.render(
        version=__version__,
        runs=report.runs,
        any_runs=all(part.results.of_any_runs for part in report.tables),
        shared=sum(part.results.runs for part in report.tables) > report.runs,
        parts=parts,
        claims=report.claims,
        others={way: join(found) for way in report.claims if (found := report.other_tables(way))},
        origins=report.origins,
        facts={part["id"]: {line.at: [line.label, line.facts] for line in part["grid"].lines} for part in parts},
        style=Markup(_read("page.css")),
        script=Markup(_read("page.js")),
    )
    write_atomically(path, text.encode())
    return path


def _describe(part: TableReport) -> dict[str, Any]:
    """Return what the template shows of one table."""
    results = part.results
    identifier = f"{results.name}-{results.way}".replace(" ", "-") if results.preset else results.name
    return {
        "id": identifier,
        "name": results.name,
        "title": part.title,
        "preset_warning": part.preset_warning,
        "tag": results.tag,
        "held_out": results.held_out,
        "coverage": part.coverage,
        "findings": part.findings,
        "limits": part.limits,
        "grid": lay_out(part),
        "memory": lay_out_memory(part),
        "memory_heading": memory_heading(results),
        "families": {row.family: inline_marker(look_of(row.family)) for row in results.rows},
        "plots": _inline_figures(part, identifier),
        "comparisons": [*part.introduction, *part.conclusions] if part.conclusions else [],
        "notes": [note for note in part.notes if note not in part.limits],
    }


def _inline_figures(part: TableReport, identifier: str) -> dict[str, tuple[str, Markup]]:
    families = {i: row.family for i, row in enumerate(part.results.rows)}
    return {
        stem: (caption_of(figure), inline_svg(figure, f"{identifier}-{stem}", caption_of(figure), families))
        for stem, figure in part.figures.items()
    }


def _mark_code(text: str) -> Markup:
    """Return text with `norms` as code and everything else escaped."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(escape_text(text)))))


def _escape_unseen(value: Any) -> Any:
    """Return text from outside, in the page and in its attributes, with control characters and line ends escaped."""
    return escape_text(value) if type(value) is str else value  # Markup is our own


def _read(name: str) -> str:
    return files("rkcnn.report.page").joinpath(name).read_text(encoding="utf-8")
