"""Which class is taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NUMBERS = 20  # classes up to which every cell can hold its count
MOST_NAMES = 40  # classes up to which every row can have its name


def draw_confusion(confusion: Sequence[Sequence[int]], classes: Sequence[str], title: str = "") -> Figure:
    """Rows are true classes, columns what they were taken for; colour is the share of the row, mistakes alone.

    The right ones stand in white with their count: they would drown the mistakes in one colour scale.
    """
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    counts = np.asarray(confusion)
    total = counts.sum(1, keepdims=True)
    shares = 100 * counts / np.maximum(total, 1)
    wrong = shares.copy()
    np.fill_diagonal(wrong, 0.0)
    number = len(classes)
    side = min(10.0, max(5.0, 2 + 0.42 * number))
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    axes = figure.subplots()
    # One hue from white to dark: its order survives colour blindness and grey print.
    shades = LinearSegmentedColormap.from_list("mistakes", ["#ffffff", "#0072B2", "#00263d"])
    top = max(float(wrong.max()), 1e-9)
    image = axes.imshow(wrong, cmap=shades, vmin=0, vmax=top)
    figure.colorbar(image, ax=axes, shrink=0.8, label="% of the row's class")
    axes.set(xlabel="taken for", ylabel="is", title=title)
    axes.title.set_fontsize(11)
    step = 1 if number <= MOST_NAMES else -(-number // MOST_NAMES)
    ticks = range(0, number, step)
    names = [classes[i][:14] for i in ticks]
    long = max(map(len, names)) > 2
    axes.set_xticks(ticks, names, rotation=90 if long else 0, fontsize=8)
    axes.set_yticks(ticks, names, fontsize=8)
    if number <= MOST_NUMBERS:
        for row in range(number):
            for column in range(number):
                if counts[row, column]:
                    axes.text(
                        column,
                        row,
                        f"{counts[row, column]}",
                        ha="center",
                        va="center",
                        fontsize=8,
                        color="white" if wrong[row, column] > 0.4 * top else "black",
                    )
    return figure
