"""The result of `rkcnn.train`: the record of the run, and ways to its network and its curves."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torch import nn

from rkcnn.error import InputError
from rkcnn.record.result import Result
from rkcnn.use.load import load
from rkcnn.use.progress import clock, count, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TrainingResult(Result):
    """The result of a run, as its record has it, with the folder that its files are in.

    `error` is the test error after the last epoch, a fraction from 0 to 1, and None if the run diverged. `error_best`
    is the lowest of all epochs; picking that epoch is a choice made on the test images. Where training images were held
    out for validation, both are errors on those.
    """

    folder: Path  # where weights.safetensors, result.json and the other files of the run are

    def __init__(self, result: Result, folder: Path) -> None:
        super().__init__(**{field.name: getattr(result, field.name) for field in fields(Result)})
        object.__setattr__(self, "folder", folder)  # the class is frozen

    def network(self) -> nn.Module:
        """Return the trained network in evaluation mode, on the CPU. It takes normalised images; see `rkcnn.load`."""
        return load(self.folder).network

    def plot(self) -> Figure:
        """Return the errors and the loss of each epoch as a matplotlib figure, which a notebook shows.

        Elsewhere, write it to a file with `figure.savefig("curves.png")`.
        """
        from rkcnn.report.figures.curves import draw_curves

        if not self.epochs:
            raise InputError(f"the run {self.status}, before its first epoch ended; there is nothing to plot")
        figure = draw_curves(self)
        figure._repr_svg_ = partial(_as_svg, figure)  # type: ignore[attr-defined]  # notebooks show a bare Figure so
        return figure

    def __repr__(self) -> str:
        run = self.run
        held_out = run.held_out
        end = f"{held_out} error {percent(self.error)}" if self.finished else self.status
        return (
            f"<TrainingResult: {run.spec} on {run.data}, recipe {run.recipe}, seed {run.seed}: {end} after "
            f"{count(len(self.epochs), 'epoch')} in {clock(self.seconds)}, in {self.folder}>"
        )


def _as_svg(figure: Figure) -> str:
    from rkcnn.report.figures.style import render

    return render(figure, "svg").decode()
