"""The style that all figures share: the looks of families, titles, logarithmic axes, and files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from rkcnn.disk import write_atomically
from rkcnn.model.drawing import Look, look_of_unknown_family
from rkcnn.model.families import LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST = 3  # rows with results that a figure of a table needs: fewer are read in the table at a glance
PALE = 0.35  # opacity of a point that takes part in no comparison

TITLE_SIZE = 10
NARROWEST_TITLE = 20  # letters: no name of a network is broken

_TICKS = ((3, (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)), (10, (1, 2, 3, 5, 7)), (500, (1, 2, 5)))


def look_of(family: str) -> Look:
    """Return the look of a family by its title, as `results.family_of` gives it."""
    return LOOKS.get(family) or look_of_unknown_family(family)


def write_title(figure: Figure, *lines: str) -> None:
    """Write a title centred over the whole figure, each line on a new one, and broken where it would be too wide."""
    title = figure.suptitle("", fontsize=TITLE_SIZE, parse_math=False)
    for room in range(max(NARROWEST_TITLE, *map(len, lines)), NARROWEST_TITLE - 1, -1):
        title.set_text("\n".join(part for line in lines for part in wrap(line, room, break_on_hyphens=False)))
        if title.get_window_extent().width < 0.97 * figure.bbox.width:
            return


def write_caption(figure: Figure, *sentences: tuple[str, bool]) -> None:
    """Give a figure those sentences that hold for it as its caption, which is no part of the picture."""
    figure.set_label(" ".join(sentence for sentence, holds in sentences if holds))


def caption_of(figure: Figure) -> str:
    """Return the caption that `write_caption` gave a figure; the page shows it below the picture."""
    return str(figure.get_label())


def scale_log(axes: Axes, which: Literal["x", "y"], values: Sequence[float]) -> None:
    """Make an axis logarithmic, with plain numbers at ticks as close as the span of the values asks for."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    span = max(values) / min(values)
    ticks = next((ticks for most, ticks in _TICKS if span < most), (1,))
    axes.set(**{f"{which}scale": "log"})
    if span == 1:
        axes.set(**{f"{which}lim": (values[0] / 1.5, values[0] * 1.5)})  # matplotlib would take two decades
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(MaxNLocator(6) if span < 1.5 else LogLocator(10, ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def save_figure(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Write stem.svg and stem.png, each whole or not at all, and return their paths."""
    paths = stem.with_name(f"{stem.name}.svg"), stem.with_name(f"{stem.name}.png")
    for path in paths:
        write_atomically(path, render(figure, path.suffix[1:]))
    return paths


def render(figure: Figure, kind: str, transparent: bool = False) -> bytes:
    """Return a figure as the bytes of an svg or png file; text stays text, and equal figures give equal bytes."""
    from matplotlib import rc_context

    content = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else None
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "rkcnn"}):
        figure.savefig(content, format=kind, dpi=150, transparent=transparent, metadata=metadata)
    return content.getvalue()
