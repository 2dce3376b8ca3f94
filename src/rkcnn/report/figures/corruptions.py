"""The error under corruptions of graded strength as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rkcnn.escape import escape_text
from rkcnn.model.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLES = ((BLUE, "o"), (ORANGE, "^"), (GREEN, "s"), (PURPLE, "D"))


def draw_corruptions(clean: float, errors: Mapping[str, Sequence[float]], title: str = "") -> Figure:
    """Draw a line for each kind of corruption: its error in percent over the grade, from that of the clean images on.

    Errors are fractions. Lines differ by colour and marker, so that they can be told apart without colour.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.axhline(100 * clean, color=GREY, linewidth=0.8, linestyle=":", label=f"clean: {100 * clean:.2f} %")
    for (kind, values), (colour, marker) in zip(errors.items(), STYLES, strict=False):
        shown = [100 * value for value in (clean, *values)]
        axes.plot(range(len(shown)), shown, color=colour, marker=marker, markersize=4.5, linewidth=1.5, label=kind)
    axes.set(xlabel="grade of the corruption", ylabel="error, %")
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(1 + max(map(len, errors.values()))))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.set_title(escape_text(title), fontsize=10, parse_math=False)  # a path may hold a $
    axes.legend(frameon=False, fontsize=9)
    return figure
