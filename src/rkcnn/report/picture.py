"""Figures on disk: one SVG to read and zoom, one PNG for where SVG can't go."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from rkcnn.disk import write_whole
from rkcnn.model.look import AMBER as AMBER
from rkcnn.model.look import BLACK as BLACK
from rkcnn.model.look import BLUE as BLUE
from rkcnn.model.look import GREEN as GREEN
from rkcnn.model.look import GREY as GREY
from rkcnn.model.look import ORANGE as ORANGE
from rkcnn.model.look import PINK as PINK
from rkcnn.model.look import SKY as SKY

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_figure(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Write stem.svg and stem.png, each whole or not at all, and return their paths."""
    paths = stem.with_name(f"{stem.name}.svg"), stem.with_name(f"{stem.name}.png")
    for path in paths:
        write_whole(path, render(figure, path.suffix[1:]))
    return paths


def render(figure: Figure, kind: str, transparent: bool = False) -> bytes:
    """The file of a figure, `kind` svg or png: text stays text, and equal figures are equal files."""
    from matplotlib import rc_context

    content = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else None
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "rkcnn"}):
        figure.savefig(content, format=kind, dpi=150, transparent=transparent, metadata=metadata)
    return content.getvalue()
