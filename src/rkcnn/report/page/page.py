"""Writes a report as one HTML file: the paper's claims, tables, figures, and where the records come from."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rkcnn import __version__
from rkcnn.disk import write_atomically
from rkcnn.error import InputError
from rkcnn.report.costs import memory_heading
from rkcnn.report.figures.style import look_of
from rkcnn.report.page.inline_svg import inline_marker, inline_svg
from rkcnn.report.page.table import lay_out, lay_out_memory
from rkcnn.report.report import Report, TableReport

if TYPE_CHECKING:
    from markupsafe import Markup

CAPTIONS = {
    "frontier-params": "Error of the last epoch, mean ± sample standard deviation over the seeds, against parameters. "
    "Networks above a bracket have equal costs and are drawn side by side. A pale point has lost runs that diverged.",
    "frontier-flops": "The same against the FLOPs of one image, 2 × MAC.",
    "frontier-seconds": "The same against training time, of runs that were trained one at a time.",
    "forest": "Differences of last-epoch means with Welch's 95 % intervals over seeds; a pale point has no interval. "
    "The grey stripe is ± one standard error of a difference between two networks on these test images, from the draw "
    "of the images.",
    "bands": "Error by epoch: the mean as a line, the range from the lowest to the highest seed as a band, the other "
    "networks in grey. The first epochs may lie above the frame. Below each panel are its last epochs on a linear "
    "scale.",
}
PAPER_CAPTIONS = {  # what is said besides where the paper's numbers stand in a figure, or beside it
    "frontier-params": " A hollow marker is the mean that the paper prints, with each run at its best epoch.",
    "frontier-flops": " The table's are by the paper's own rule.",
    "forest": " A hollow marker is the difference of the means that the paper prints.",
}


def write_page(report: Report, path: Path) -> Path:
    """Write one HTML file that needs nothing else, neither files nor a network, and return its path."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    if not report.tables:
        raise InputError("no table given for the page; name one, as mnist")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
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
    captions = CAPTIONS
    if not part.results.of_any_runs:
        captions = {stem: text + PAPER_CAPTIONS.get(stem, "") for stem, text in CAPTIONS.items()}
    return {
        stem: (captions[stem], inline_svg(figure, f"{identifier}-{stem}", captions[stem], families))
        for stem, figure in part.figures.items()
    }


def _mark_code(text: str) -> Markup:
    """Return text with `norms` as code and everything else escaped."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _read(name: str) -> str:
    return files("rkcnn.report.page").joinpath(name).read_text(encoding="utf-8")
