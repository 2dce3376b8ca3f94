"""The report as one file to send: tables, figures, claims, and where the records come from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rkcnn import __version__
from rkcnn.disk import write_whole
from rkcnn.error import InputError
from rkcnn.report.compare import compare
from rkcnn.report.entry import decimals
from rkcnn.report.findings import say_coverage, say_limits, say_shown
from rkcnn.report.footnotes import footnotes
from rkcnn.report.footprint import say_heading
from rkcnn.report.inline import inline_marker, inline_svg
from rkcnn.report.judged import judge_claims
from rkcnn.report.judgement import Judgement
from rkcnn.report.look import look_of
from rkcnn.report.origin import find_origins
from rkcnn.report.page_table import lay_out, lay_out_memory
from rkcnn.report.plots import draw_plots
from rkcnn.report.view import View
from rkcnn.report.words import conclude, mark, note_comparisons, tag, title

if TYPE_CHECKING:
    from markupsafe import Markup


Judged = Mapping[str, Sequence[Judgement]]  # by preset


def write_page(views: Sequence[View], path: Path, judgements: Judged | None = None) -> Path:
    """Write one HTML file that needs nothing else, neither files nor a network; of one view or more.

    `judgements` are the paper's claims by preset; without them they are judged from the runs of these views alone.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    if not views:
        raise InputError("no table given for the page; name one, as mnist")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["code"] = _mark_code
    template = environment.from_string(_read("page.html.jinja"))
    parts = [_describe(view) for view in views]
    text = template.render(
        version=__version__,
        parts=parts,
        judgements=_judge(views) if judgements is None else judgements,
        origins=find_origins(result for view in views for row in view.rows for result in (*row.results, *row.diverged)),
        facts={part["id"]: {line.at: [line.label, line.facts] for line in part["grid"].lines} for part in parts},
        style=Markup(_read("page.css")),
        script=Markup(_read("page.js")),
    )
    write_whole(path, text.encode())
    return path


def _judge(views: Sequence[View]) -> Judged:
    rows = [row for view in views for row in view.rows]
    runs = [run for row in rows for run in zip(row.folders, row.results, strict=True)]
    runs += [(Path(), result) for row in rows for result in row.diverged]
    return {preset: judge_claims(runs, preset) for preset in dict.fromkeys(view.preset for view in views)}


def _mark_code(text: str) -> Markup:
    """`norms` as code, whatever else is in the text as text."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _read(name: str) -> str:
    return files("rkcnn.report").joinpath(name).read_text(encoding="utf-8")


def _describe(view: View) -> dict[str, Any]:
    contrasts = compare(view)
    limits = say_limits(view, contrasts)
    notes = note_comparisons(view, contrasts) if contrasts else ()
    return {
        "id": f"{view.table.name}-{view.preset}",
        "name": view.table.name,
        "title": title(view),
        "mark": mark(view),
        "tag": tag(view),
        "coverage": say_coverage(view, contrasts),
        "shown": list(say_shown(view, contrasts)),
        "limits": limits,
        "grid": lay_out(view, contrasts),
        "memory": lay_out_memory(view),
        "memory_heading": say_heading(view),
        "families": {row.family: inline_marker(look_of(row.family)) for row in view.rows},
        "plots": _draw(view),
        "comparisons": [*notes, *(conclude(contrast, decimals(view)) for contrast in contrasts)],
        "notes": [note for note in footnotes(view) if note not in limits],
    }


CAPTIONS = {
    "frontier-params": "Error of the last epoch, mean ± sample std over the seeds, against parameters. "
    "A hollow point is what is left of runs that diverged.",
    "frontier-flops": "The same against the FLOPs of one image, 2 × MAC; the table's are by the paper's own rule.",
    "frontier-seconds": "The same against training time, of runs that were trained one at a time.",
    "forest": "Differences of means with Welch's 95 % intervals. A hollow point has no interval.",
    "bands": "Test error by epoch: the mean as a line, the least and the most over the seeds as a band, the other "
    "networks in grey. The first epochs may lie above the frame.",
}


def _draw(view: View) -> dict[str, tuple[str, Markup]]:
    families = {i: row.family for i, row in enumerate(view.rows)}
    return {
        stem: (CAPTIONS[stem], inline_svg(figure, f"{view.table.name}-{view.preset}-{stem}", CAPTIONS[stem], families))
        for stem, figure in draw_plots(view).items()
    }
