"""The title of a figure, broken so that it fits."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = 10
NARROWEST = 20  # letters: no name of a network is broken


def write_headline(figure: Figure, *lines: str) -> None:
    """Centred over the whole figure, each line begun anew, and broken as often as its width asks for."""
    headline = figure.suptitle("", fontsize=SIZE, parse_math=False)
    for room in range(max(NARROWEST, *map(len, lines)), NARROWEST - 1, -1):
        headline.set_text("\n".join(part for line in lines for part in wrap(line, room, break_on_hyphens=False)))
        if headline.get_window_extent().width < 0.97 * figure.bbox.width:
            return
