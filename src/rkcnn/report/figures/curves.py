"""The curves of one run: errors and loss by epoch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rkcnn.escape import escape_text
from rkcnn.model.drawing import BLUE, GREY, ORANGE
from rkcnn.record.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDEST = 64  # characters of a line of the title, so that it fits even if all of them are wide


def draw_curves(result: Result) -> Figure:
    """Draw training and held-out error in percent beside the loss, and mark the last and the best epoch.

    The result needs one epoch or more. The label of the best epoch says that it is chosen on the held-out images.
    """
    from matplotlib.figure import Figure

    run, epochs = result.run, result.epochs
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    title = escape_text(f"{run.network} on {run.data}: {run.recipe}, seed {run.seed}")
    figure.suptitle(_wrap(title), fontsize=10, parse_math=False)  # a path may hold a $
    errors, losses = figure.subplots(1, 2)
    for axes, label in ((errors, "error, %"), (losses, "training loss")):
        axes.set(xlabel="epoch", ylabel=label)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.xaxis.get_major_locator().set_params(integer=True)
    numbers = [epoch.number + 1 for epoch in epochs]
    held = run.held_out
    learnt = [100 * epoch.training_error for epoch in epochs]
    tested = [100 * epoch.held_out_error for epoch in epochs]
    dot = "." if len(epochs) == 1 else ""  # a line of one point can't be seen
    errors.plot(numbers, learnt, color=ORANGE, marker=dot, linestyle="--", linewidth=1.4, label="training")
    errors.plot(numbers, tested, color=BLUE, linewidth=1.8, label=held)
    _mark(errors, numbers, tested, held)
    loss = [epoch.loss for epoch in epochs]
    losses.plot(numbers, loss, color=ORANGE, marker=dot, linestyle="--", linewidth=1.4)
    _scale(errors, learnt + tested)
    _scale(losses, loss)
    if run.recipe.schedule == "steps":
        _show_rates(losses, [(epoch.number + 1, epoch.lr) for epoch in epochs])
    errors.legend(frameon=False, fontsize=9)
    return figure


def _wrap(title: str) -> str:
    """Break a title into lines of at most WIDEST characters, behind a space or comma where there is one."""
    lines = [""]
    for piece in re.findall(rf"[^ ,]{{0,{WIDEST - 1}}}[ ,]|[^ ,]{{1,{WIDEST}}}", title):
        if len(lines[-1] + piece.rstrip()) > WIDEST:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _mark(axes: Axes, numbers: list[int], tested: list[float], held: str) -> None:
    """Draw the best epoch as a ring and the last as a dot, which can be told apart without colour."""
    best = tested.index(min(tested))
    axes.plot(
        numbers[best],
        tested[best],
        "o",
        color=BLUE,
        fillstyle="none",
        markersize=10,
        label=f"best: {tested[best]:.2f} % in epoch {numbers[best]},\nchosen on the {held} set",
    )
    axes.plot(numbers[-1], tested[-1], "o", color=BLUE, markersize=5, label=f"last: {tested[-1]:.2f} %")


def _scale(axes: Axes, values: list[float]) -> None:
    """Take a logarithmic scale where all values are positive and span more than a decade, to show a run's end."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    if min(values) > 0 and max(values) > 10 * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(10, (1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    else:
        axes.set_ylim(bottom=0)


def _show_rates(axes: Axes, rates: list[tuple[int, float]]) -> None:
    """Write the learning rate where it changes, unless there are too many such places."""
    changes = [rate for before, rate in zip([(0, None), *rates], rates, strict=False) if before[1] != rate[1]]
    if len(changes) > 6:
        return
    for number, lr in changes:
        axes.axvline(number, color=GREY, linewidth=0.6, linestyle=":")
        axes.annotate(
            f"lr {lr:g}", (number, 1), xycoords=("data", "axes fraction"), xytext=(3, -9),
            textcoords="offset points", fontsize=8, color=GREY,
        )  # fmt: skip
