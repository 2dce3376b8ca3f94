"""Differences of errors against one network, each with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rkcnn.data.sets import SETS
from rkcnn.error import InputError
from rkcnn.report.look import look_of
from rkcnn.report.pace import note_pace
from rkcnn.report.picture import BLACK, GREY
from rkcnn.report.proportion import sampling_error
from rkcnn.report.statistics import Difference, welch
from rkcnn.report.view import Row, View

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def find_reference(view: View) -> Row | None:
    """The RKCNN that errs least in the last epoch, or the row that does where there is no RKCNN."""
    rows = [row for row in view.rows if row.last is not None]
    ours = [row for row in rows if row.family.startswith("RKCNN")]
    return min(ours or rows, key=_mean, default=None)


def draw_forest(view: View, reference: str | None = None) -> Figure | None:
    """Last-epoch mean minus the reference's, with Welch's 95 % interval; None with nothing to compare.

    Shaded is one standard error of the test set itself at the reference's error: a difference within it may not
    outlive another test set, however narrow its interval over the seeds.
    """
    from matplotlib.figure import Figure

    rows = [row for row in view.rows if row.last is not None]
    against = _named(rows, reference) if reference else find_reference(view)
    compared = sorted((row for row in rows if row is not against), key=_mean)
    if against is None or not compared:
        return None
    differences = [welch(_errors(row), _errors(against)) for row in compared]
    figure = Figure(figsize=(6.4, 1.5 + 0.3 * len(compared)), layout="constrained")
    axes = figure.subplots()
    note = note_pace(view.pace)
    axes.set_title(
        f"{view.table.name}: error minus that of {against.spec}" + (f"\n{note}" if note else ""),
        fontsize=11, parse_math=False,
    )  # fmt: skip
    axes.set_xlabel("difference of last-epoch means, percentage points (worse to the right)")
    images = SETS[view.table.data_at(view.pace)].test.images
    se = 100 * sampling_error(_mean(against), images).se
    axes.axvspan(-se, se, color=GREY, alpha=0.18, linewidth=0, label=f"± one standard error of the test set, {se:.2f}")
    axes.axvline(0, color=BLACK, linewidth=0.9)
    for y, (row, found) in enumerate(zip(compared, differences, strict=True)):
        _draw_row(axes, y, row, found, view.rows.index(row))
    axes.set_yticks(range(len(compared)), [row.spec for row in compared], fontsize=8, parse_math=False)
    axes.set_ylim(len(compared) - 0.4, -0.6)  # the least error on top
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    figure.legend(loc="outside lower center", frameon=False, fontsize=8)
    return figure


def _draw_row(axes: Axes, y: int, row: Row, found: Difference, index: int) -> None:
    colour, marker, size = look_of(row.family)
    value = 100 * found.value
    text = f"{value:+.3f}"
    if found.interval is not None:
        low, high = (100 * bound for bound in found.interval)
        axes.plot([low, high], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
        text += f"  [{low:+.3f}, {high:+.3f}]"
    else:
        text += "  (no interval)"
    filled = "full" if found.interval is not None else "none"  # no interval: a hollow point
    axes.plot(value, y, marker, color=colour, markersize=size, fillstyle=filled, gid=f"point-{index}")
    axes.annotate(
        text, (1, y), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points", va="center",
        fontsize=8, annotation_clip=False,
    )  # fmt: skip


def _named(rows: list[Row], spec: str) -> Row:
    for row in rows:
        if row.spec == spec:
            return row
    raise InputError(
        f"no finished run of {spec!r} to compare with; rows with results are {', '.join(r.spec for r in rows)}"
    )


def _errors(row: Row) -> list[float]:
    return [result.error for result in row.results if result.error is not None]


def _mean(row: Row) -> float:
    assert row.last is not None
    return row.last.mean
