"""Error against what it costs: parameters, FLOPs or training time, with the frontier of the best trade-offs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rkcnn.model.drawing import GREY, Look
from rkcnn.report.figures.labels import Line, Place, place_labels
from rkcnn.report.figures.style import FEWEST, PALE, look_of, scale_log, write_caption, write_title
from rkcnn.report.results import ResultTable
from rkcnn.report.row import Row
from rkcnn.report.sentences import preset_warning
from rkcnn.report.statistics import Sample

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

Cost = Literal["params", "flops", "seconds"]
COSTS: tuple[Cost, ...] = ("params", "flops", "seconds")
BESIDE = 9.0  # typographic points between the markers of networks of equal cost, where there is room
LEAST_BESIDE = 2.0  # less can't be told apart: a bar is 1.2 points wide
HIDING = 4.0  # typographic points between the middles of two markers of which one would hide the other
SMALLER = 0.6  # times its size is that of the one on top
SHARE = 0.4  # of the way to the nearest network of other cost; below a half, so that two groups never meet
_WORDS = {"params": "parameters", "flops": "FLOPs an image (2 × MAC)", "seconds": "training time a run"}
_AGAINST = {
    "params": "parameters",
    "flops": "the FLOPs of one image, 2 × MAC",
    "seconds": "training time, of runs that were trained one at a time",
}
_UNITS = {  # the least cost that a unit is used for, the unit, its name
    "params": ((1e6, 1e6, "million"), (0, 1e3, "thousand")),
    "flops": ((1e9, 1e9, "G"), (0, 1e6, "M")),
    "seconds": ((10_000, 3600, "h"), (180, 60, "min"), (0, 1, "s")),
}


class Point(NamedTuple):
    """A row in the figure; errors are in percent."""

    at: int  # the number of the row in its table
    row: Row
    cost: float  # in the figure's unit
    error: Sample
    printed: float | None  # the paper's mean, where it may be set beside ours

    @property
    def place(self) -> Place:
        return self.cost, 100 * self.error.mean


def find_frontier(points: Sequence[Place]) -> list[int]:
    """Return the points (cost, error) that none beats in one without losing in the other, by rising cost.

    Of equal points the first stands for all.
    """
    found: list[int] = []
    for i in sorted(range(len(points)), key=points.__getitem__):
        if not found or points[i][1] < points[found[-1]][1]:
            found.append(i)
    return found


def draw_frontier(results: ResultTable, cost: Cost) -> Figure | None:
    """Draw last-epoch error, mean ± std over the seeds, against a cost; None with fewer than three points, or smoke.

    Time is drawn only where every run had its device to itself. The paper's mean is a hollow marker at the same cost.
    Networks of equal cost are drawn side by side above a bracket, whose stem is at that cost, and all of them at that
    cost where a neighbour leaves no room. A row of which runs diverged is pale, and the frontier passes over it: its
    surviving runs are a biased sample.
    """
    from matplotlib.figure import Figure

    if results.preset == "smoke" or (cost == "seconds" and not results.trained_alone):
        return None
    costs = [float(value) for row in results.rows if row.last and (value := getattr(row, cost))]
    if len(costs) < FEWEST:
        return None
    unit, letter = next((unit, name) for least, unit, name in _UNITS[cost] if sqrt(min(costs) * max(costs)) >= least)
    points = [
        Point(i, row, value / unit, row.last, _printed(results, row))
        for i, row in enumerate(results.rows)
        if row.last and (value := getattr(row, cost))
    ]
    figure = Figure(figsize=(7.2, max(4.8, 0.45 * len(points))), layout="constrained")  # room for every name
    axes = figure.subplots()
    write_title(figure, f"{results.name}: error and {_WORDS[cost]}", preset_warning(results))
    axes.set(xlabel=f"{_WORDS[cost]}, {letter}", ylabel=f"{results.held_out} error of the last epoch, %")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    _set_scales(axes, points)
    places, brackets = _place_side_by_side(axes, points)
    lines = [*_draw_points(axes, points, places), *brackets, *_draw_frontier_line(axes, points, places)]
    _draw_legend(figure, axes, points, bool(brackets))
    _write_caption(figure, results, cost, points, bool(brackets))
    colours = [look_of(point.row.family).colour for point in points]
    hollow = [(x, point.printed) for point, (x, _) in zip(points, places, strict=True) if point.printed is not None]
    names = place_labels(axes, places, [point.row.label for point in points], colours, lines, hollow)
    for point, name in zip(points, names, strict=True):
        name.set_gid(f"name-{point.at}")
        if name.arrow_patch is not None:
            name.arrow_patch.set_gid(f"bar-{point.at}-line")
    figure.set_layout_engine("none")  # the names were placed in this layout
    return figure


def _printed(results: ResultTable, row: Row) -> float | None:
    return 100 * row.printed_mean if results.compares_with_paper(row) and row.printed_mean is not None else None


def _set_scales(axes: Axes, points: Sequence[Point]) -> None:
    """Make both axes logarithmic, with room for the bars, the paper's markers and the names."""
    errors = [point.place[1] for point in points]
    errors += [point.printed for point in points if point.printed is not None]
    ends = [(cost, error + sign * 100 * (std or 0)) for (cost, error), std in _bars(points) for sign in (-1, 1)]
    scale_log(axes, "x", [point.cost for point in points])
    if min(errors) > 0:
        scale_log(axes, "y", errors)
    lowest = min(errors)
    seen = [(cost, max(error, 0.5 * lowest)) for cost, error in ends]  # a bar may reach 0, which has no logarithm
    axes.update_datalim([*seen, *((points[0].cost, error) for error in errors)])
    axes.margins(0.12)
    axes.autoscale_view()


def _bars(points: Sequence[Point]) -> list[tuple[Place, float | None]]:
    return [(point.place, point.error.std) for point in points]


def _place_side_by_side(axes: Axes, points: Sequence[Point]) -> tuple[list[Place], list[Line]]:
    """Return where to draw each point, and the brackets below those drawn side by side, which are drawn here."""
    import numpy as np

    axes.figure.draw_without_rendering()  # type: ignore[union-attr]  # settles the scale
    scale = axes.figure.dpi / 72
    true: NDArray[np.float64] = axes.transData.transform(np.array([point.place for point in points]))
    pixels = true.copy()
    brackets: list[Line] = []
    for group in _group_by_cost(points):
        cost = float(true[group[0], 0])
        room = SHARE * float(np.abs(np.delete(true[:, 0], group) - cost).min(initial=np.inf))
        step = min(BESIDE * scale, 2 * room / (len(group) - 1))
        if step < LEAST_BESIDE * scale:
            continue
        pixels[group, 0] = cost + step * (np.arange(len(group)) - (len(group) - 1) / 2)
        heights = [points[i].place[1] - 100 * (points[i].error.std or 0) for i in group]
        heights += [value for i in group if (value := points[i].printed) is not None]
        height = max(min(heights), axes.get_ylim()[0])  # a bar may reach 0, which has no logarithm
        lowest = max(float(axes.transData.transform((points[group[0]].cost, height))[1]), axes.bbox.y0 + 15 * scale)
        left, right, level = float(pixels[group[0], 0]), float(pixels[group[-1], 0]), lowest - 10 * scale
        bracket = [(left, level + 3 * scale), (left, level), (right, level), (right, level + 3 * scale)]
        stem = [(cost, level), (cost, level - 4 * scale)]
        for corners in (bracket, stem):
            path = [_to_data(axes, *corner) for corner in corners]
            axes.plot(*zip(*path, strict=True), color=GREY, linewidth=0.9, zorder=1, scalex=False, scaley=False)
            brackets += list(pairwise(path))
    return [_to_data(axes, x, y) for x, y in pixels], brackets


def _group_by_cost(points: Sequence[Point]) -> list[list[int]]:
    """Return the numbers of the points that cost the same as another, in groups of equal cost, each by rising error.

    Drawn side by side in this order, none lies on the left of the one that may be on the frontier.
    """
    groups: dict[float, list[int]] = {}
    for i in sorted(range(len(points)), key=lambda i: points[i].place):
        groups.setdefault(points[i].cost, []).append(i)
    return [group for group in groups.values() if len(group) > 1]


def _to_data(axes: Axes, x: float, y: float) -> Place:
    across, up = axes.transData.inverted().transform((x, y))
    return float(across), float(up)


def _draw_points(axes: Axes, points: Sequence[Point], places: Sequence[Place]) -> list[Line]:
    """Draw each point with its bar and the paper's marker; return the lines that names should keep off.

    A marker that would hide an earlier one is smaller, so that both are seen.
    """
    import numpy as np

    lines = []
    pixels = axes.transData.transform(np.array(places)) * 72 / axes.figure.dpi
    for i, (point, (x, y)) in enumerate(zip(points, places, strict=True)):
        covers = bool((np.linalg.norm(pixels[:i] - pixels[i], axis=1) < HIDING).any())
        look = look_of(point.row.family)
        shade = 1 if point.row.all_finished else PALE
        if point.error.std is not None:
            half = 100 * point.error.std
            _, caps, (bar,) = axes.errorbar(
                x, y, half, fmt="none", ecolor=look.colour, elinewidth=1.2, capsize=2.5, zorder=2, alpha=shade
            )
            for number, part in enumerate((*caps, bar)):
                part.set_gid(f"bar-{point.at}-{number}")  # on the page it fades with its point
            lines.append(((x, y - half), (x, y + half)))
        if point.printed is not None:
            lines.append(_draw_printed(axes, point, (x, y), look))
        axes.plot(
            x, y, look.marker, color=look.colour, markersize=look.size * (SMALLER if covers else 1),
            markeredgecolor="white", markeredgewidth=0.8, zorder=4, alpha=shade, gid=f"point-{point.at}",
        )  # fmt: skip
    return lines


def _draw_printed(axes: Axes, point: Point, ours: Place, look: Look) -> Line:
    """Draw the paper's mean as a hollow marker, with a dotted line to ours."""
    assert point.printed is not None
    x, y = ours
    axes.plot([x, x], [y, point.printed], ":", color=look.colour, linewidth=0.8, zorder=2, gid=f"bar-{point.at}-gap")
    axes.plot(
        x, point.printed, look.marker, color=look.colour, markersize=look.size - 1, fillstyle="none",
        markeredgewidth=1.1, zorder=3, gid=f"bar-{point.at}-paper",
    )  # fmt: skip
    return (x, y), (x, point.printed)


def _draw_frontier_line(axes: Axes, points: Sequence[Point], places: Sequence[Place]) -> list[Line]:
    """Draw the Pareto frontier and return its lines; a single point has none."""
    kept = [i for i, point in enumerate(points) if point.row.all_finished]
    if len(kept) < 2:
        return []
    found = [places[kept[i]] for i in find_frontier([points[i].place for i in kept])]
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    corners = [(found[0][0], top)]
    for place in found:
        corners += [(place[0], corners[-1][1]), place]
    corners.append((high, corners[-1][1]))
    axes.plot(*zip(*corners, strict=True), color=GREY, linewidth=1.0, linestyle="--", zorder=1, label="frontier")
    axes.set(xlim=(low, high), ylim=(bottom, top))
    return list(pairwise(corners))


def _draw_legend(figure: Figure, axes: Axes, points: Sequence[Point], brackets: bool) -> None:
    """Explain below the figure what is drawn in it; inside it would lie over a name."""
    from matplotlib.path import Path

    marks: dict[str, Any] = {"color": GREY, "linestyle": "none"}
    if any(point.error.std is not None for point in points):
        axes.plot([], [], "|", markersize=10, label="± std over seeds", **marks)
    if any(point.printed is not None for point in points):
        axes.plot([], [], "o", label="our mean, after the last epoch", **marks)
        axes.plot([], [], "o", fillstyle="none", label="the paper's mean, each run at its best epoch", **marks)
    if not all(point.row.all_finished for point in points):
        axes.plot([], [], "o", alpha=PALE, label="pale: some of its runs diverged", **marks)
    if brackets:
        shape = Path([(-1, 0.3), (-1, -0.3), (1, -0.3), (1, 0.3)])
        axes.plot([], [], marker=shape, fillstyle="none", markersize=13, label="side by side: equal cost", **marks)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)


def _write_caption(figure: Figure, results: ResultTable, cost: Cost, points: Sequence[Point], brackets: bool) -> None:
    spread = any(point.error.std is not None for point in points)
    printed = any(point.printed is not None for point in points)
    over_seeds = ", mean ± sample standard deviation over the seeds," if spread else ""
    write_caption(
        figure,
        (f"Error of the last epoch{over_seeds} against {_AGAINST[cost]}.", True),
        ("The table's FLOPs are by the paper's own rule.", cost == "flops" and not results.of_any_runs),
        ("Networks above a bracket have equal costs and are drawn side by side.", brackets),
        ("A pale point has lost runs that diverged.", not all(point.row.all_finished for point in points)),
        ("A hollow marker is the mean that the paper prints, with each run at its best epoch.", printed),
    )
