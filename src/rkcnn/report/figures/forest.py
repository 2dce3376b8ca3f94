"""The forest plot: the difference of each network's error from its reference, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rkcnn.model.drawing import BLACK, GREY
from rkcnn.report.compare import Comparison
from rkcnn.report.figures.style import FEWEST, PALE, look_of, write_title
from rkcnn.report.results import ResultTable
from rkcnn.report.sentences import preset_warning

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRINTED_BELOW = 0.2  # rows: the paper's marker would hide behind ours


def draw_forest(results: ResultTable, pairs: Sequence[Comparison]) -> Figure | None:
    """Draw last-epoch means minus the reference's with Welch's 95 % intervals; None with fewer than three networks.

    Without runs of the reference there is nothing to draw, since one chosen by our own errors would look better than it
    is; rows of which runs diverged are left out. The grey stripe behind a row is one standard error of a difference
    between two runs from the draw of the test images: a difference within it may not outlast another test set, however
    narrow its interval over the seeds. A hollow marker is the difference of the means that the paper prints.
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
    for y, (pair, difference) in enumerate(zip(pairs, printed, strict=True)):
        _draw_row(axes, y, pair, difference, numbers[pair.row.network], results.decimals)
    axes.plot([], [], color=GREY, linewidth=1.6, label="Welch's 95 % interval over seeds, each by itself")
    if any(difference is not None for difference in printed):
        axes.plot([], [], "o", color=GREY, linestyle="none", label="our difference, after the last epoch")
        label = "the paper's difference, at best epochs"
        axes.plot([], [], "o", color=GREY, fillstyle="none", linestyle="none", label=label)
    axes.plot([], [], linestyle="none", label="bold: separable after Holm's correction")
    axes.set_yticks(range(len(pairs)), [pair.row.label for pair in pairs], fontsize=8, parse_math=False)
    for name, pair in zip(axes.get_yticklabels(), pairs, strict=True):
        name.set_gid(f"name-{numbers[pair.row.network]}")
    axes.set_ylim(len(pairs) - 0.4, -0.6)  # the least error on top
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.locator_params(axis="x", nbins=6)  # more would touch, at three decimals and a sign
    figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=8)
    return figure


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


def _draw_row(axes: Axes, y: int, pair: Comparison, printed: float | None, number: int, digits: int) -> None:
    look, found = look_of(pair.row.family), pair.difference
    value = 100 * found.value
    text = f"{value:+.{digits}f}"
    if found.interval is not None:
        low, high = (100 * bound for bound in found.interval)
        axes.plot([low, high], [y, y], color=look.colour, linewidth=1.6, solid_capstyle="butt", gid=f"bar-{number}")
        text += f"  [{low:+.{digits}f}, {high:+.{digits}f}]"
    else:
        text += "  (no interval)"
    if printed is not None:
        axes.plot(
            printed, y + PRINTED_BELOW, look.marker, color=look.colour, markersize=look.size - 1, fillstyle="none",
            markeredgewidth=1.1, zorder=3, gid=f"bar-{number}-paper",
        )  # fmt: skip
    shade = 1 if found.interval is not None else PALE
    axes.plot(
        value, y, look.marker, color=look.colour, markersize=look.size, markeredgecolor="white", markeredgewidth=0.8,
        zorder=4, alpha=shade, gid=f"point-{number}",
    )  # fmt: skip
    axes.annotate(
        text, (1, y), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points", va="center",
        fontsize=8, annotation_clip=False, weight="bold" if pair.separable else "normal", gid=f"bar-{number}-text",
    )  # fmt: skip
