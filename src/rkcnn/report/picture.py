"""Figures on disk: one SVG to read and zoom, one PNG for where SVG can't go."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from rkcnn.disk import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours: told apart by colour-blind readers, and by their lightness in grey print.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
SKY, AMBER, PINK, BLACK = "#56B4E9", "#E69F00", "#CC79A7", "#000000"


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
