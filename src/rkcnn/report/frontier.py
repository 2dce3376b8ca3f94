"""What an error costs: error against parameters, FLOPs or training time, and the frontier."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

from rkcnn.report.headline import write_headline
from rkcnn.report.labels import Line, Place, place_labels
from rkcnn.report.look import look_of
from rkcnn.report.picture import GREY
from rkcnn.report.scale import scale_log
from rkcnn.report.statistics import Sample
from rkcnn.report.view import Row, View
from rkcnn.report.words import mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Cost = Literal["params", "flops", "seconds"]
COSTS: tuple[Cost, ...] = ("params", "flops", "seconds")
_WORDS = {"params": "parameters", "flops": "FLOPs an image (2 × MAC)", "seconds": "training time a run"}
_UNITS = {  # from where on, in what, called what
    "params": ((1e6, 1e6, "million"), (0, 1e3, "thousand")),
    "flops": ((1e9, 1e9, "G"), (0, 1e6, "M")),
    "seconds": ((10_000, 3600, "h"), (180, 60, "min"), (0, 1, "s")),
}


class Point(NamedTuple):
    at: int  # of the row in its view
    row: Row
    cost: float
    error: Sample


def find_frontier(points: Sequence[Place]) -> list[int]:
    """The points (cost, error) that none beats in one without losing in the other, by rising cost.

    Of equal points the first stands for all.
    """
    found: list[int] = []
    for i in sorted(range(len(points)), key=points.__getitem__):
        if not found or points[i][1] < points[found[-1]][1]:
            found.append(i)
    return found


def is_timed(view: View) -> bool:
    """Whether training times say something of the networks: runs side by side share one wall time."""
    return all(row.together == 1 for row in view.rows if row.results)


def draw_frontier(view: View, cost: Cost) -> Figure | None:
    """Last-epoch error, mean ± std over the seeds, against a cost; None where no row has both, and of smoke.

    Time is drawn only where every run had its device to itself (`is_timed`). A row of which runs diverged is a hollow
    point that the frontier passes over: what is left of it is chosen.
    """
    from matplotlib.figure import Figure

    points = [
        Point(i, row, float(value), row.last)
        for i, row in enumerate(view.rows)
        if row.last is not None and (value := getattr(row, cost))
    ]
    if not points or view.preset == "smoke" or (cost == "seconds" and not is_timed(view)):
        return None
    middle = sqrt(min(p.cost for p in points) * max(p.cost for p in points))
    unit, letter = next((unit, letter) for least, unit, letter in _UNITS[cost] if middle >= least)
    places = [(p.cost / unit, 100 * p.error.mean) for p in points]
    figure = Figure(figsize=(6.4, max(4.8, 0.32 * len(points))), layout="constrained")  # room for every name
    axes = figure.subplots()
    write_headline(figure, f"{view.table.name}: error and {_WORDS[cost]}", mark(view))
    axes.set(xlabel=f"{_WORDS[cost]}, {letter}", ylabel="test error of the last epoch, %")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.margins(0.12)
    scale_log(axes, "x", [x for x, _ in places])
    if min(y for _, y in places) > 0:
        scale_log(axes, "y", [y for _, y in places])
    bars = _draw_bars(axes, points, places)
    stairs = _draw_stairs(axes, [place for place, point in zip(places, points, strict=True) if point.row.whole])
    if not all(point.row.whole for point in points):
        axes.plot([], [], "o", color=GREY, fillstyle="none", linestyle="none", label="some of its runs diverged")
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)  # inside it would lie over a name
    colours = [look_of(point.row.family).colour for point in points]
    names = place_labels(axes, places, [point.row.label for point in points], colours, [*bars, *stairs])
    for point, name in zip(points, names, strict=True):
        name.set_gid(f"name-{point.at}")
        if name.arrow_patch is not None:
            name.arrow_patch.set_gid(f"bar-{point.at}-line")
    figure.set_layout_engine("none")  # the names were placed in this layout
    return figure


def _draw_bars(axes: Axes, points: Sequence[Point], places: Sequence[Place]) -> list[Line]:
    """Each point with its bar; the bars as lines."""
    bars = []
    for point, (x, y) in zip(points, places, strict=True):
        colour, marker, size = look_of(point.row.family)
        if point.error.std is not None:
            half = 100 * point.error.std
            _, caps, (bar,) = axes.errorbar(
                x, y, half, fmt="none", ecolor=colour, elinewidth=1.2, capsize=2.5, zorder=2
            )
            for number, part in enumerate((*caps, bar)):
                part.set_gid(f"bar-{point.at}-{number}")  # fades on the page with its point
            bars.append(((x, y - half), (x, y + half)))
        edge = ("white", 0.8) if point.row.whole else (colour, 1.4)
        axes.plot(
            x, y, marker, color=colour, markersize=size, markeredgecolor=edge[0], markeredgewidth=edge[1], zorder=3,
            fillstyle="full" if point.row.whole else "none", gid=f"point-{point.at}",
        )  # fmt: skip
    if bars:
        axes.plot([], [], "|", color=GREY, markersize=10, linestyle="none", label="± std over seeds")
    return bars


def _draw_stairs(axes: Axes, places: Sequence[Place]) -> list[Line]:
    """The frontier: nothing here errs less for less. Its treads and risers as lines; one point has none."""
    if len(places) < 2:
        return []
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    corners = [(places[find_frontier(places)[0]][0], top)]
    for i in find_frontier(places):
        corners += [(places[i][0], corners[-1][1]), places[i]]
    corners.append((high, corners[-1][1]))
    axes.plot(*zip(*corners, strict=True), color=GREY, linewidth=1.0, linestyle="--", zorder=1, label="frontier")
    axes.set(xlim=(low, high), ylim=(bottom, top))
    return list(pairwise(corners))
