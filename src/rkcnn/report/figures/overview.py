"""Every run of several tables in one figure: a panel for each data set, and a line for each kind of network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from rkcnn.model.drawing import BLACK, GREY
from rkcnn.report.figures.style import FEWEST, look_of, scale_log
from rkcnn.report.results import ResultTable
from rkcnn.report.row import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS = 1.5  # inches, for the names of the networks
WIDE = 2.6  # inches of a panel
HIGH = 0.27  # inches of a line
EACH = "the same weights, statistics for each evaluation"
SPREAD = 0.3  # of a line, over which the seeds of a network are spread, so that equal errors can be told apart


class Panel(NamedTuple):
    """A data set of the figure. A network that was not run there has no row, and one that can't be has no line."""

    title: str
    results: ResultTable
    rows: tuple[tuple[str, Row | None], ...]  # by the name of the line

    @property
    def has_runs(self) -> bool:
        """Whether all runs of some network ended."""
        return any(row and row.all_finished for _, row in self.rows)


def find_names(panels: Sequence[Panel]) -> list[str]:
    """Return the names of the networks that were run on any of the data sets, in the order of the lines."""
    run = {name for panel in panels for name, row in panel.rows if row}
    return list(dict.fromkeys(name for panel in panels for name, _ in panel.rows if name in run))


def can_be_drawn(panels: Sequence[Panel]) -> bool:
    """Whether there are enough networks for a figure."""
    return len(find_names(panels)) >= FEWEST and any(panel.has_runs for panel in panels)


def draw_overview(panels: Sequence[Panel], same_scale: bool = False) -> Figure | None:
    """Draw the last-epoch error of every run and the mean of each network; None with fewer than three networks.

    The panels share their lines, the first on top. Each has an axis of its own, or with `same_scale` all have the same;
    it is logarithmic, since the network without any step errs several times as much as the others. A dot is a run, and
    a bar the mean of a network's runs. A circle is what a run errs, with the same weights, where each evaluation of f
    has running statistics of its own, if that was measured (docs/batch-norm.md). Of a network that lost runs to
    divergence the others are a biased sample; it is said that they diverged, and none is drawn. The paper's means are
    left out, since they are those of best epochs.
    """
    from matplotlib.figure import Figure

    names, shown = find_names(panels), [panel for panel in panels if panel.has_runs]
    if not can_be_drawn(panels):
        return None
    figure = Figure(figsize=(LABELS + WIDE * len(shown), 1.3 + HIGH * len(names)), layout="constrained")
    columns = figure.subplots(1, len(shown), sharex=same_scale, sharey=True, squeeze=False)[0]
    errors = [_draw_panel(axes, panel, names) for panel, axes in zip(shown, columns, strict=True)]
    for values, axes in zip([[*chain(*errors)]] * len(errors) if same_scale else errors, columns, strict=True):
        if min(values) > 0:
            scale_log(axes, "x", values)
    columns[0].set_yticks(range(len(names)), names, fontsize=9, parse_math=False)
    columns[0].set_ylim(len(names) - 0.4, -0.6)
    columns[0].plot([], [], "o", color=GREY, markersize=4, alpha=0.7, label="a run, after its last epoch")
    columns[0].plot([], [], "|", color=BLACK, markersize=11, markeredgewidth=1.6, label="mean of the runs")
    if any(row and row.errors_with_a_set_each for panel in shown for _, row in panel.rows):
        columns[0].plot([], [], "o", color=GREY, markersize=4, markerfacecolor="none", label=EACH)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


def _draw_panel(axes: Axes, panel: Panel, names: Sequence[str]) -> list[float]:
    """Draw the dots and bars of one panel, and return the errors in percent."""
    axes.set_title(panel.title, fontsize=10, parse_math=False)
    recipe = panel.results.recipe
    axes.set_xlabel(f"test error, %\n{recipe.name}, {recipe.epochs} epochs", fontsize=9, parse_math=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(alpha=0.25, linewidth=0.6)
    values: list[float] = []
    rows = dict(panel.rows)
    for y, name in ((y, name) for y, name in enumerate(names) if name in rows):
        row = rows[name]
        if row is None or not row.all_finished:
            lost = (
                f"{len(row.diverged)} of {len(row.diverged) + len(row.results)} runs diverged" if row else "not run yet"
            )
            axes.annotate(
                lost, (0.5, y), xycoords=("axes fraction", "data"), fontsize=7, color=GREY, ha="center", va="center"
            )
            continue
        errors = [100 * error for error in row.errors]
        others = [100 * error for error in row.errors_with_a_set_each]
        colour = look_of(row.family).colour
        axes.plot(errors, _spread(errors, y), "o", color=colour, markersize=4, markeredgewidth=0, alpha=0.7)
        axes.plot(fmean(errors), y, "|", color=BLACK, markersize=11, markeredgewidth=1.6)
        if others:
            axes.plot(others, _spread(others, y), "o", color=colour, markersize=4, markerfacecolor="none")
        values += [*errors, *others]
    return values


def _spread(errors: Sequence[float], y: float) -> list[float]:
    """Return where the errors of one line stand, so that equal ones lie beside each other."""
    middle = (len(errors) - 1) / 2
    return [y + SPREAD * (i - middle) / max(1, len(errors) - 1) for i in range(len(errors))]
