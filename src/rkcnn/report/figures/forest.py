"""The forest plot: the difference of each network's error from its reference, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rkcnn.model.drawing import BLACK, GREY
from rkcnn.report.compare import Comparison
from rkcnn.report.figures.style import FEWEST, PALE, look_of, write_caption, write_title
from rkcnn.report.results import ResultTable
from rkcnn.report.sentences import preset_warning

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRINTED_BELOW = 0.2  # rows: the paper's marker would hide behind ours
STRETCH = 2.5  # rows that would make the axis so many times as long leave it, if they are few
STANDS_OUT = 1.5  # times as long the axis would be with the least of them
MOST_BEYOND = 1 / 3  # of the rows
MARGIN = 0.05  # of the axis, on either side of what it covers


class Drawn(NamedTuple):
    """What a figure has, and so what its legend and its caption explain."""

    interval: bool
    pale: bool
    stripe: bool
    printed: bool
    beyond: bool


def draw_forest(results: ResultTable, pairs: Sequence[Comparison]) -> Figure | None:
    """Draw last-epoch means minus the reference's with Welch's 95 % intervals; None with fewer than three networks.

    Without runs of the reference there is nothing to draw, since one chosen by our own errors would look better than it
    is; rows of which runs diverged are left out. The grey stripe behind a row is one standard error of a difference
    between two runs from the draw of the test images: a difference within it may not outlast another test set, however
    narrow its interval over the seeds. A hollow marker is the difference of the means that the paper prints. Rows that
    would flatten all others go on beyond the axis as arrows (`find_ends`).
    """
    from matplotlib.figure import Figure

    if not pairs or len({row.network for pair in pairs for row in (pair.row, pair.reference)}) < FEWEST:
        return None
    pairs = sorted(pairs, key=lambda pair: pair.difference.value)
    references = list(dict.fromkeys(pair.reference.label for pair in pairs))
    figure = Figure(figsize=(6.4, 1.9 + 0.28 * len(pairs)), layout="constrained")
    axes = figure.subplots()
    write_title(figure, f"{results.name}: error minus that of {' or of '.join(references)}", preset_warning(results))
    axes.set_xlabel("difference of last-epoch means, percentage points (worse to the right)")
    axes.axvline(0, color=BLACK, linewidth=0.9)
    numbers = {row.network: i for i, row in enumerate(results.rows)}
    _draw_stripes(axes, pairs, results.held_out)
    printed = [_printed(results, pair) for pair in pairs]
    low, high = find_ends([_reach(pair, difference) for pair, difference in zip(pairs, printed, strict=True)])
    room = MARGIN * (high - low) or 0.1  # networks without a difference have no scale of their own
    axes.set_xlim(low - room, high + room)
    beyond = [
        _draw_row(axes, y, pair, difference, numbers[pair.row.network], results.decimals)
        for y, (pair, difference) in enumerate(zip(pairs, printed, strict=True))
    ]
    drawn = Drawn(
        interval=any(pair.difference.interval for pair in pairs),
        pale=not all(pair.difference.interval for pair in pairs),
        stripe=any(pair.sampling for pair in pairs),
        printed=any(difference is not None for difference in printed),
        beyond=any(beyond),
    )
    _fill_legend(axes, drawn)
    _write_caption(figure, drawn, results.held_out)
    axes.set_yticks(range(len(pairs)), [pair.row.label for pair in pairs], fontsize=8, parse_math=False)
    for name, pair in zip(axes.get_yticklabels(), pairs, strict=True):
        name.set_gid(f"name-{numbers[pair.row.network]}")
    axes.set_ylim(len(pairs) - 0.4, -0.6)  # the least error on top
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0, pad=6)  # an arrow ends on the edge
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.locator_params(axis="x", nbins=6)  # more would touch, at three decimals and a sign
    figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=8)
    return figure


def _fill_legend(axes: Axes, drawn: Drawn) -> None:
    """Explain whatever is drawn; the stripes have an entry of their own."""
    marks: dict[str, Any] = {"color": GREY, "linestyle": "none"}
    if drawn.interval:
        axes.plot([], [], color=GREY, linewidth=1.6, label="Welch's 95 % interval over seeds, each by itself")
    if drawn.printed:
        axes.plot([], [], "o", label="our difference, after the last epoch", **marks)
        axes.plot([], [], "o", fillstyle="none", label="the paper's difference, at best epochs", **marks)
    if drawn.pale:
        axes.plot([], [], "o", alpha=PALE, label="pale: no interval", **marks)
    if drawn.beyond:
        axes.plot([], [], label="arrow: goes on or lies beyond the axis", color=GREY, **_arrow(1))
    axes.plot([], [], linestyle="none", label="bold: separable after Holm's correction")


def _write_caption(figure: Figure, drawn: Drawn, held_out: str) -> None:
    intervals = " with Welch's 95 % intervals over seeds" if drawn.interval else ""
    write_caption(
        figure,
        (f"Differences of last-epoch means{intervals}.", True),
        ("A pale point has no interval.", drawn.pale),
        ("An arrow goes on or lies beyond the axis, which would flatten the other rows otherwise.", drawn.beyond),
        (
            f"The grey stripe is ± one standard error of a difference between two networks on these {held_out} images, "
            "from the draw of the images.",
            drawn.stripe,
        ),
        ("A hollow marker is the difference of the means that the paper prints.", drawn.printed),
    )


def _draw_stripes(axes: Axes, pairs: Sequence[Comparison], held_out: str) -> None:
    """Draw behind each row ± one standard error of its difference from the draw of the images."""
    found = {y: pair.sampling for y, pair in enumerate(pairs) if pair.sampling}
    if not found:
        return
    errors = [100 * sampling.se for sampling in found.values()]
    low, high = f"{min(errors):.2f}", f"{max(errors):.2f}"
    size = low if low == high else f"{low} to {high}"
    ways = {
        "from the images that seed 0 of the two judges differently"
        if sampling.disagreeing is not None
        else "if the two err independently"
        for sampling in found.values()
    }
    how = ", or ".join(sorted(ways))
    label = f"± one standard error of a difference of two runs on these {held_out} images, {size}\n({how})"
    for y, sampling in found.items():
        se = 100 * sampling.se
        # edges without a line, so that stripes of equal width look like one
        axes.fill_betweenx([y - 0.5, y + 0.5], -se, se, color=GREY, alpha=0.18, linewidth=0, label=label)
        label = "_"  # matplotlib leaves such labels out of the legend


def _printed(results: ResultTable, pair: Comparison) -> float | None:
    """Return the difference of the paper's means in points, where ours may be compared with it."""
    if not results.compares_with_paper(pair.row) or not results.compares_with_paper(pair.reference):
        return None
    first, second = pair.row.printed_mean, pair.reference.printed_mean
    return None if first is None or second is None else 100 * (first - second)


def _reach(pair: Comparison, printed: float | None) -> tuple[float, float]:
    """Return the lowest and the highest value that is drawn in a row, in points."""
    found, se = pair.difference, 100 * pair.sampling.se if pair.sampling else 0.0
    values = [100 * value for value in (found.value, *(found.interval or ()))]
    values += [-se, se, *([] if printed is None else [printed])]
    return min(values), max(values)


def find_ends(reaches: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the ends of an axis that covers 0 and all rows but a few, each from its lowest to its highest value.

    The rows that reach farthest are left out where they would make the axis more than `STRETCH` times as long as the
    others need, if they are at most `MOST_BEYOND` of all and even the nearest of them stands out from the others.
    """
    ordered = sorted(reaches, key=lambda reach: max(-reach[0], reach[1]))
    lows, highs = zip(*ordered, strict=True)
    ends = [(min(0.0, *lows[:count]), max(0.0, *highs[:count])) for count in range(1, len(ordered) + 1)]
    lengths = [high - low for low, high in ends]
    last = len(ends) - 1
    for i in range(last - 1, last - 1 - int(MOST_BEYOND * len(ends)), -1):
        stands_out = lengths[i + 1] > STANDS_OUT * lengths[i] > 0
        if stands_out and lengths[last] > STRETCH * lengths[i]:
            last = i
    return ends[last]


def _draw_row(axes: Axes, y: int, pair: Comparison, printed: float | None, number: int, digits: int) -> bool:
    """Draw a difference with its interval and the paper's; return whether any of them goes beyond the axis."""
    look, found = look_of(pair.row.family), pair.difference
    left, right = axes.get_xlim()
    value = 100 * found.value
    text = f"{value:+.{digits}f}"
    shade = 1 if found.interval is not None else PALE
    arrows: list[tuple[float, float, str]] = []  # each to where, in which height, and its gid
    if found.interval is not None:
        low, high = (100 * bound for bound in found.interval)
        ends = [max(low, left), min(high, right)]
        if ends[0] < ends[1]:
            axes.plot(ends, [y, y], color=look.colour, linewidth=1.6, solid_capstyle="butt", gid=f"bar-{number}")
        # where the mean itself lies beyond the axis, one arrow is both
        if low < left <= value:
            arrows.append((low, y, f"bar-{number}-left"))
        if value <= right < high:
            arrows.append((high, y, f"bar-{number}-right"))
        text += f"  [{low:+.{digits}f}, {high:+.{digits}f}]"
    else:
        text += "  (no interval)"
    if printed is not None:
        below, gid = y + PRINTED_BELOW, f"bar-{number}-paper"
        if left <= printed <= right:
            axes.plot(
                printed, below, look.marker, color=look.colour, markersize=look.size - 1, fillstyle="none",
                markeredgewidth=1.1, zorder=3, gid=gid,
            )  # fmt: skip
        else:
            arrows.append((printed, below, gid))
    if left <= value <= right:
        axes.plot(
            value, y, look.marker, color=look.colour, markersize=look.size, markeredgecolor="white",
            markeredgewidth=0.8, zorder=4, alpha=shade, gid=f"point-{number}",
        )  # fmt: skip
    else:
        arrows.append((value, y, f"point-{number}"))
    for x, height, gid in arrows:
        _draw_arrow(axes, x, height, color=look.colour, alpha=shade, gid=gid)
    axes.annotate(
        text, (1, y), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points", va="center",
        fontsize=8, annotation_clip=False, weight="bold" if pair.separable else "normal", gid=f"bar-{number}-text",
    )  # fmt: skip
    return bool(arrows)


def _draw_arrow(axes: Axes, x: float, y: float, **how: Any) -> None:
    """Draw an arrow with its tip at that end of the axis beyond which x lies."""
    left, right = axes.get_xlim()
    axes.plot(min(max(x, left), right), y, clip_on=False, **_arrow(-1 if x < left else 1), **how)


def _arrow(way: int) -> dict[str, Any]:
    """Return an arrow to the right (1) or to the left (-1) as a marker; it looks like that of no family."""
    from matplotlib.path import Path

    shape = Path([(-2 * way, 0), (0, 0), (-0.7 * way, 0.6), (0, 0), (-0.7 * way, -0.6)])
    return {"marker": shape, "markersize": 18, "markeredgewidth": 1.6, "fillstyle": "none", "linestyle": "none"}
