"""Figures of one evaluation: the confusion matrix, and the error under corruptions of graded strength."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from rkcnn.escape import escape_text
from rkcnn.model.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_NUMBERS = 20  # classes up to which every cell can hold its count
FEW = 5  # mistakes
MOST_NAMES = 40  # classes up to which every row can have its name


def draw_confusion(confusion: Sequence[Sequence[int]], classes: Sequence[str], title: str = "") -> Figure:
    """Draw counts with a row for each true class and a column for each predicted one.

    The colour is the share of the row, of mistakes alone. Right answers are grey: in the same colour scale they would
    hide the mistakes. The scale ends at the largest share, or where a class of average size has FEW mistakes, so that
    a single mistake among few images isn't dark.
    """
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    counts = np.asarray(confusion)
    total = counts.sum(1, keepdims=True)
    shares = 100 * counts / np.maximum(total, 1)
    wrong = np.ma.masked_array(shares, mask=np.eye(len(counts), dtype=bool))
    number = len(classes)
    side = min(10.0, max(5.0, 2 + 0.42 * number))
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    axes = figure.subplots()
    # One hue from white to dark: its order survives colour blindness and grey print.
    shades = LinearSegmentedColormap.from_list("mistakes", ["#ffffff", BLUE, "#00263d"], bad="#e4e4e4")
    top = max(float(wrong.filled(0.0).max()), min(100.0, 100 * FEW / max(float(total.mean()), 1.0)))
    image = axes.imshow(wrong, cmap=shades, vmin=0, vmax=top)
    figure.colorbar(image, ax=axes, shrink=0.8, label="% of the true class")
    axes.set(xlabel="taken for", ylabel="true class")
    figure.suptitle(fill(escape_text(title), 60), fontsize=11, parse_math=False)  # a path or a class name may hold a $
    step = 1 if number <= MOST_NAMES else -(-number // MOST_NAMES)
    ticks = range(0, number, step)
    names = [escape_text(classes[i])[:14] for i in ticks]
    long = sum(map(len, names)) > 50
    axes.set_xticks(ticks, names, rotation=90 if long else 0, fontsize=8, parse_math=False)
    axes.set_yticks(ticks, names, fontsize=8, parse_math=False)
    if number <= MOST_NUMBERS:
        for row, column in zip(*counts.nonzero(), strict=True):
            dark = row != column and shares[row, column] > 0.4 * top
            text = str(counts[row, column])
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color="white" if dark else "black")
    return figure


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
