"""Differences of errors against one network, each with its interval."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from rkcnn.data.sets import SETS
from rkcnn.evaluation.binomial import sampling_error
from rkcnn.report.compare import compare, reference_of
from rkcnn.report.headline import write_headline
from rkcnn.report.look import look_of
from rkcnn.report.picture import BLACK, GREY
from rkcnn.report.statistics import Difference, welch
from rkcnn.report.view import Row, View
from rkcnn.report.words import mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_forest(view: View) -> Figure | None:
    """Last-epoch mean minus the reference's, with Welch's 95 % interval; None with nothing to compare.

    The reference is the table's own (`reference_of`); where that has no run there is nothing to draw, since one chosen
    by our errors would look better than it is. Rows of which runs diverged are left out, and smoke altogether. Shaded
    is one standard error of the test set itself at the references' error: a difference within it may not outlive
    another test set, however narrow its interval over the seeds.
    """
    from matplotlib.figure import Figure

    if view.preset == "smoke":
        return None
    named = {row.spec: row for row in view.rows if row.whole}
    referred = ((row, named.get(reference_of(view.table, row.spec))) for row in named.values())
    pairs = [(row, other) for row, other in referred if other is not None and other is not row]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: _mean(pair[0]) - _mean(pair[1]))
    references = list(dict.fromkeys(other.label for _, other in pairs))
    figure = Figure(figsize=(6.4, 1.6 + 0.28 * len(pairs)), layout="constrained")
    axes = figure.subplots()
    write_headline(figure, f"{view.table.name}: error minus that of {' or of '.join(references)}", mark(view))
    axes.set_xlabel("difference of last-epoch means, percentage points (worse to the right)")
    images = SETS[view.table.data_at(view.preset)].test.images
    se = 100 * sampling_error(fmean(_mean(other) for _, other in pairs), images).se
    axes.axvspan(
        -se, se, color=GREY, alpha=0.18, linewidth=0, label=f"± one standard error of a single error, {se:.2f}"
    )
    axes.axvline(0, color=BLACK, linewidth=0.9)
    separable = {contrast.row.spec for contrast in compare(view) if contrast.separable}
    for y, (row, other) in enumerate(pairs):
        found = welch(_errors(row), _errors(other))
        _draw_row(axes, y, row, found, view.rows.index(row), row.spec in separable)
    axes.plot([], [], color=GREY, linewidth=1.6, label="Welch's 95 % interval over seeds, each by itself")
    axes.plot([], [], linestyle="none", label="bold: separable after Holm's correction")
    axes.set_yticks(range(len(pairs)), [row.label for row, _ in pairs], fontsize=8, parse_math=False)
    for name, (row, _) in zip(axes.get_yticklabels(), pairs, strict=True):
        name.set_gid(f"name-{view.rows.index(row)}")
    axes.set_ylim(len(pairs) - 0.4, -0.6)  # the least error on top
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.locator_params(axis="x", nbins=6)  # more would touch, at three decimals and a sign
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def _draw_row(axes: Axes, y: int, row: Row, found: Difference, index: int, separable: bool) -> None:
    colour, marker, size = look_of(row.family)
    value = 100 * found.value
    text = f"{value:+.3f}"
    if found.interval is not None:
        low, high = (100 * bound for bound in found.interval)
        axes.plot([low, high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt", gid=f"bar-{index}")
        text += f"  [{low:+.3f}, {high:+.3f}]"
    else:
        text += "  (no interval)"
    filled = "full" if found.interval is not None else "none"  # no interval: a hollow point
    axes.plot(value, y, marker, color=colour, markersize=size, fillstyle=filled, gid=f"point-{index}")
    axes.annotate(
        text, (1, y), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points", va="center",
        fontsize=8, annotation_clip=False, weight="bold" if separable else "normal", gid=f"bar-{index}-text",
    )  # fmt: skip


def _errors(row: Row) -> list[float]:
    return [result.error for result in row.results if result.error is not None]


def _mean(row: Row) -> float:
    assert row.last is not None
    return row.last.mean
