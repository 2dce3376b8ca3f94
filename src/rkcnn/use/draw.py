"""`rkcnn.draw`: the picture of one time-step of a network, as SVG without any library."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from math import ceil
from pathlib import Path

from rkcnn.disk import write_output
from rkcnn.error import InputError
from rkcnn.model.drawing import Diagram
from rkcnn.model.families import ORIGINALS
from rkcnn.model.limits import check_evaluations
from rkcnn.model.period import step_diagram
from rkcnn.model.spec import spec_of

LANE, LEFT, TOP, BOX, GAP = 44, 70, 92, 62, 14
# Okabe & Ito's colours that read on white, also for the colour-blind; y is black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6D00", "#56B4E9", "#7F3C8D", "#4D4D4D")
SHADES = ("#EEF4FA", "#FBF1E8", "#EEF7F2", "#F8EFF5")


def to_svg(diagram: Diagram) -> str:
    """Return the SVG of one time-step, from left to right: a box is a computation, a dot a value that it reads."""
    titles = (ceil((6.5 * len(title) + GAP) / (last - first + 1)) for title, first, last in diagram.phases)
    pitch = max(92, *(_box(column.label) + GAP for column in diagram.columns), *titles)  # between columns
    height = TOP + LANE * len(diagram.lanes) + 34
    width = max(LEFT + pitch * len(diagram.columns) + 96, 9 * len(diagram.title) + 190, 7 * len(diagram.note) + 32)
    edge = LEFT + pitch * len(diagram.columns) + 82
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(n for n in diagram.lanes if n[0] != "y")}
    colour |= {name: "#222222" for name in diagram.lanes if name[0] == "y"}
    level = {name: TOP + LANE * i + LANE // 2 for i, name in enumerate(diagram.lanes)}
    bottom = TOP + LANE * len(diagram.lanes)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="system-ui, Helvetica, Arial, sans-serif" font-size="13">',
        f"<title>One time-step of {escape(diagram.title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#FFFFFF"/>',
        _text(16, 24, f"One time-step of {diagram.title}", "start", 15, weight=600),
        _text(16, 43, diagram.note, "start", 12, "#555555"),
    ]
    for shade, (title, first, last) in zip(SHADES * len(diagram.phases), diagram.phases, strict=False):
        left, wide = LEFT + pitch * first + 4, pitch * (last - first + 1) - 8
        out.append(
            f'<rect x="{left}" y="{TOP - 32}" width="{wide}" height="{bottom - TOP + 38}" rx="6" fill="{shade}"/>'
        )
        out.append(_text(left + wide / 2, bottom + 1, title, size=12, fill="#555555"))
    centre = [LEFT + pitch * i + pitch / 2 for i in range(len(diagram.columns))]
    starts = {column.writes: x for x, column in zip(centre, diagram.columns, strict=True)}
    for name in diagram.lanes:
        uses = [x for x, column in zip(centre, diagram.columns, strict=True) if name in column.reads]
        start = starts.get(name, LEFT - 14)
        early = [x for x in uses if x < start]  # read before it is computed: equations that are solved together
        end = max([start + pitch / 2 - 8, *uses]) if name != "y'" else edge - 50
        if early:
            out.append(_line(min(early), level[name], start, level[name], colour[name], dash=True))
        out.append(_line(start, level[name], end, level[name], colour[name]))
        if name not in starts:
            out.append(_text(LEFT - 20, level[name] + 4, name, "end", fill=colour[name], weight=600))
    for x, column in zip(centre, diagram.columns, strict=True):
        out.extend(_computation(x, column.label, column.reads, column.writes, level, colour))
    out.append(_text(edge, level["y'"] + 4, "next y", "end", fill="#222222", weight=600))
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _computation(
    x: float, label: str, reads: dict[str, str], writes: str, level: dict[str, int], colour: dict[str, str]
) -> list[str]:
    """Return a box above its column, dots where it reads, and an arrow to the lane that it starts."""
    target = level[writes]
    lowest = max([target, *(level[name] for name in reads)])
    ink = colour[writes]
    parts = [_line(x, TOP - 12, x, lowest, "#9A9A9A", width=1.2)]
    for name, weight in reads.items():
        parts.append(f'<circle cx="{x:g}" cy="{level[name]}" r="5" fill="{colour[name]}" stroke="#FFFFFF"/>')
        if weight:
            parts.append(_text(x + 8, level[name] - 7, weight, "start", 11, "#444444"))
    parts.append(f'<path d="M{x - 7:g} {target - 9}h14l-7 9z" fill="{ink}"/>')
    if writes != "y'":
        parts.append(_text(x + 12, target + 17, writes, "start", 12, ink, 600))
    wide = _box(label)
    parts.append(
        f'<rect x="{x - wide / 2:g}" y="{TOP - 30}" width="{wide:g}" height="22" rx="5" fill="#FFFFFF" stroke="{ink}" '
        'stroke-width="1.6"/>'
    )
    parts.append(_text(x, TOP - 15, label, size=12))
    return parts


def _box(label: str) -> int:
    """Return the width of the box around a label."""
    return max(BOX, 7 * len(label) + 8)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 2.2, dash: bool = False) -> str:
    dashes = ' stroke-dasharray="5 4"' if dash else ""
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width}"'
        f'{dashes} stroke-linecap="round"/>'
    )


def _text(
    x: float, y: float, text: str, anchor: str = "middle", size: int = 13, fill: str = "#222222", weight: int = 400
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{fill}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )


@dataclass(frozen=True)
class Drawing:
    """An SVG picture, which a notebook shows."""

    network: str  # the full name of what is drawn
    svg: str = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write the picture to a file that ends in .svg."""
        path = Path(path)
        if not path.name.lower().endswith(".svg"):
            raise InputError(f"can't draw to {path}; the picture is an SVG, so give a file that ends in .svg")
        if not path.parent.is_dir():
            raise InputError(f"can't draw to {path}: there is no folder {path.parent}; name one that exists")
        write_output(path, self.svg.encode(), "name another file")

    def _repr_svg_(self) -> str:
        return self.svg


def draw(name: str) -> Drawing:
    """Return one time-step of a network as a picture: its stages, and what each of them reads.

    Read it from left to right, in the order of computation. A line is a value, a dot says that the box above reads it,
    and a triangle is where that box's result begins. A dashed line is read before it is computed, so that it must be
    solved for. Raises InputError for published originals that are not made of time-steps.
    """
    if not isinstance(name, str):
        raise InputError(f"a name of type {type(name).__name__} given; a network's is text, as in 'RKCNN-I-3@k=32'")
    spec = spec_of(name)
    if spec is None:
        drawn = ", ".join(known.name for known in ORIGINALS.values() if known.same_as)
        raise InputError(
            f"can't draw {name}: it is not made of periods and time-steps, as {drawn} and all names with @ are, "
            "for example RKCNN-I-3@k=32"
        )
    check_evaluations(spec)
    return Drawing(str(spec), to_svg(step_diagram(spec)))
