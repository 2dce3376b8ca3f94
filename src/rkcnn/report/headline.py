"""The title of a figure, broken so that it fits."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = 10
_LETTER = 0.09  # inches of a letter at that size; digits of DejaVu Sans have 0.088, most letters less


def write_headline(figure: Figure, *lines: str) -> None:
    """Over the whole width, each line begun anew; empty ones are left out."""
    room = int((figure.get_figwidth() - 0.2) / _LETTER)
    text = "\n".join(part for line in lines for part in wrap(line, room, break_on_hyphens=False))
    figure.suptitle(text, fontsize=SIZE, parse_math=False)
