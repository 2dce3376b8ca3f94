"""Test error by epoch over the seeds, a panel a family."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from rkcnn.report.headline import write_headline
from rkcnn.report.look import look_of
from rkcnn.report.picture import GREY
from rkcnn.report.scale import scale_log
from rkcnn.report.view import Row, View
from rkcnn.report.words import mark

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

ACROSS = 3
NARROWEST = 6.4  # inches: as wide as the other figures
HIGHEST = 30  # times the lowest error: the first epochs may leave the panel, so that the last can be told apart
_LINES = ("-", "--", ":", "-.")


class Course(NamedTuple):
    """Of a row by epoch, in percent."""

    row: Row
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def draw_bands(view: View) -> Figure | None:
    """Mean and, as a band, the least and most over the seeds; the other rows' means stand behind in grey.

    None without results, and where one epoch is all there is.
    """
    from matplotlib.figure import Figure

    courses = [_follow(row) for row in view.rows if any(result.epochs for result in row.results)]
    if all(len(course.mean) < 2 for course in courses):
        return None
    families = list(dict.fromkeys(course.row.family for course in courses))
    across = min(ACROSS, len(families))
    down = ceil(len(families) / across)
    figure = Figure(figsize=(max(NARROWEST, 3.2 * across), 0.7 + 2.3 * down), layout="constrained")
    title = f"{view.table.name}: test error by epoch, mean and range (least to most) over seeds"
    write_headline(figure, title, mark(view))
    figure.supylabel("test error, %", fontsize=10)
    figure.supxlabel("epoch", fontsize=10)
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat
    for panel, family in zip(panels, families, strict=False):
        panel.set_gid(f"panel-{next(i for i, row in enumerate(view.rows) if row.family == family)}")
        _draw_panel(panel, family, courses)
    _scale(panels[0], courses)
    for panel in panels[len(families) :]:
        panel.remove()
    for panel in panels[len(families) - across : len(families)]:
        panel.tick_params(labelbottom=True)  # the lowest of each column, also above a panel that isn't there
    return figure


def _follow(row: Row) -> Course:
    import numpy as np

    runs = [[100 * epoch.held_out_error for epoch in result.epochs] for result in row.results if result.epochs]
    length = min(map(len, runs))
    errors = np.array([run[:length] for run in runs])
    return Course(row, errors.mean(0), errors.min(0), errors.max(0))


def _draw_panel(axes: Axes, family: str, courses: Sequence[Course]) -> None:
    colour = look_of(family).colour
    axes.set_title(family, fontsize=10, loc="left", parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    lines = cycle(_LINES)
    for course in courses:
        epochs = range(1, len(course.mean) + 1)
        if course.row.family != family:
            axes.plot(epochs, course.mean, color=GREY, alpha=0.35, linewidth=0.6, zorder=1)
            continue
        axes.fill_between(epochs, course.low, course.high, color=colour, alpha=0.25, linewidth=0, zorder=2)
        axes.plot(
            epochs, course.mean, color=colour, linewidth=1.5, linestyle=next(lines), zorder=3,
            label=f"{course.row.label} (n={len(course.row.results)})",
        )  # fmt: skip
    for text in axes.legend(fontsize=8, loc="upper right", framealpha=0.75, edgecolor="none").get_texts():
        text.set_parse_math(False)


def _scale(axes: Axes, courses: Sequence[Course]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_xlim(0.5, max(len(course.mean) for course in courses) + 0.5)
    lowest = min(float(course.low.min()) for course in courses)
    highest = max(float(course.high.max()) for course in courses)
    if lowest <= 0:
        axes.set_ylim(0, highest or 1)
        return
    top = min(highest, HIGHEST * lowest)
    scale_log(axes, "y", [lowest, top])
    axes.set_ylim(lowest / 1.1, top * 1.1)
