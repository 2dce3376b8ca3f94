"""Error by epoch over the seeds, a panel for each family, and below it a zoom on the last epochs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from rkcnn.model.drawing import GREY
from rkcnn.report.figures.style import FEWEST, look_of, scale_log, write_caption, write_title
from rkcnn.report.results import ResultTable
from rkcnn.report.row import Row
from rkcnn.report.sentences import preset_warning

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

ACROSS = 3
NARROWEST = 6.4  # inches: as wide as the other figures
HIGHEST = 30  # times the lowest error: the first epochs may leave the panel, so that the last can be told apart
ZOOM = 0.2  # the share of the epochs that the lower panels show
FEWEST_EPOCHS = 10  # with fewer the whole course can be read without a zoom
LEGEND = 0.12  # of the height of the curves, for each name in a legend
LONG_NAME = 32  # characters; longer names are written smaller
_GREY: dict[str, Any] = {"color": GREY, "alpha": 0.35, "linewidth": 0.6}
_LINES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)))


class ErrorCurve(NamedTuple):
    """A row's error by epoch, in percent: the mean over the seeds, the lowest and the highest."""

    row: Row
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def draw_bands(results: ResultTable) -> Figure | None:
    """Draw mean and, as a band, the range over the seeds; the means of other families are grey lines behind.

    None with fewer than three networks, and where there is only one epoch.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    courses = [_error_curve(row) for row in results.rows if any(result.epochs for result in row.results)]
    length = max((len(course.mean) for course in courses), default=0)
    if len(courses) < FEWEST or length < 2:
        return None
    families = list(dict.fromkeys(course.row.family for course in courses))
    across = min(ACROSS, len(families))
    down = ceil(len(families) / across)
    zoomed = length >= FEWEST_EPOCHS
    heights = [2.3, 1.5] if zoomed else [2.3]
    figure = Figure(figsize=(max(NARROWEST, 3.2 * across), 0.7 + down * sum(heights)), layout="constrained")
    title = f"{results.name}: {results.held_out} error by epoch, mean and range over seeds"
    below = f"below each panel its last {_last(length)} epochs on a linear scale" if zoomed else ""
    write_title(figure, title, below, preset_warning(results))
    figure.supylabel(f"{results.held_out} error, %", fontsize=10)
    figure.supxlabel("epoch", fontsize=10)
    grid = figure.add_gridspec(down * len(heights), across, height_ratios=heights * down)
    numbers = {family: next(i for i, row in enumerate(results.rows) if row.family == family) for family in families}
    wholes: list[Axes] = []
    zooms: list[Axes] = []
    for i, family in enumerate(families):
        line, column = divmod(i, across)
        first = wholes[0] if wholes else None
        panel = figure.add_subplot(grid[line * len(heights), column], sharex=first, sharey=first)
        panel.set_title(family, fontsize=10, loc="left", parse_math=False)
        wholes.append(panel)
        if zoomed:
            first = zooms[0] if zooms else None
            zooms.append(figure.add_subplot(grid[line * 2 + 1, column], sharex=first, sharey=first))
        for panel in (wholes[-1], *zooms[-1:]):
            panel.set_gid(f"panel-{numbers[family]}" + "-zoom" * (panel in zooms))
            panel.tick_params(labelleft=column == 0)
            _draw_courses(panel, family, courses)
        longest = max(len(course.row.label) for course in courses if course.row.family == family)
        size = 8 if longest <= LONG_NAME else 6.5
        legend = wholes[-1].legend(fontsize=size, loc="upper right", framealpha=0.75, edgecolor="none")
        legend.set_in_layout(False)  # else the layout would make the panels narrower, to hold it beside them
        for text in legend.get_texts():
            text.set_parse_math(False)
    _scale(wholes[0], courses, max(Counter(course.row.family for course in courses).values()))
    if zoomed:
        _scale_zoom(zooms[0], courses, length)
    if len(families) > 1:
        grey = Line2D([], [], label="mean of a network of another panel", **_GREY)
        figure.legend(handles=[grey], loc="outside lower right", frameon=False, fontsize=8)  # beside the axis label
    shared = any(len(course.row.results) > 1 for course in courses)
    band = ": the mean as a line, the range from the lowest to the highest seed as a band" if shared else ""
    write_caption(
        figure,
        (f"Error by epoch{band}.", True),
        ("The networks of other families are in grey.", len(families) > 1),
        ("The first epochs may lie above the frame.", _is_cut(wholes[0], courses)),
        ("Below each panel are its last epochs on a linear scale.", zoomed),
    )
    return figure


def _last(length: int) -> int:
    return max(2, round(ZOOM * length))


def _error_curve(row: Row) -> ErrorCurve:
    import numpy as np

    runs = [[100 * epoch.held_out_error for epoch in result.epochs] for result in row.results if result.epochs]
    length = min(map(len, runs))
    errors = np.array([run[:length] for run in runs])
    return ErrorCurve(row, errors.mean(0), errors.min(0), errors.max(0))


def _draw_courses(axes: Axes, family: str, courses: Sequence[ErrorCurve]) -> None:
    colour = look_of(family).colour
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    lines = cycle(_LINES)
    for course in courses:
        epochs = range(1, len(course.mean) + 1)
        if course.row.family != family:
            axes.plot(epochs, course.mean, zorder=1, **_GREY)
            continue
        axes.fill_between(epochs, course.low, course.high, color=colour, alpha=0.25, linewidth=0, zorder=2)
        axes.plot(
            epochs, course.mean, color=colour, linewidth=1.5, linestyle=next(lines), zorder=3,
            label=f"{course.row.label} (n={len(course.row.results)})",
        )  # fmt: skip


def _scale(axes: Axes, courses: Sequence[ErrorCurve], names: int) -> None:
    """Show all epochs, with room for a legend of so many names above the curves."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_xlim(0.5, max(len(course.mean) for course in courses) + 0.5)
    lowest = min(float(course.low.min()) for course in courses)
    highest = max(float(course.high.max()) for course in courses)
    if lowest <= 0:
        axes.set_ylim(0, (highest or 1) * (1 + LEGEND * names))
        return
    top = min(highest, HIGHEST * lowest)
    scale_log(axes, "y", [lowest, top])
    axes.set_ylim(lowest / 1.1, top * 1.1 * (top / lowest) ** (LEGEND * names))


def _is_cut(axes: Axes, courses: Sequence[ErrorCurve]) -> bool:
    return max(float(course.high.max()) for course in courses) > axes.get_ylim()[1]


def _scale_zoom(axes: Axes, courses: Sequence[ErrorCurve], length: int) -> None:
    """Show the last epochs, from the lowest to the highest error of any run in them."""
    from matplotlib.ticker import MaxNLocator

    start = length - _last(length)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_xlim(start + 0.5, length + 0.5)
    ends = [part[start:] for course in courses for part in (course.low, course.high) if len(part) > start]
    low, high = min(float(end.min()) for end in ends), max(float(end.max()) for end in ends)
    room = 0.05 * (high - low) or 0.5 * high or 1.0
    axes.set_ylim(max(0.0, low - room), high + room)
