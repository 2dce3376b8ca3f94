"""What every rival is inside the one frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from rkcnn.model.solver_stats import SolverStats


@dataclass(frozen=True)
class TimeStep:
    """One time-step: the new state, the increments that made it, the guesses they came from."""

    y: Tensor
    e: tuple[Tensor, ...]
    x: tuple[Tensor, ...] = ()


class PaperCharge(NamedTuple):
    """What the paper's FLOP column charges for a solve: evaluations of f, and operations an element of y."""

    evaluations: int
    operations: int


class Period(nn.Module):
    """What happens between two changes of resolution: y -> (onward, readout).

    A rival writes `walk`; the last state goes onward and is read out, unless it says otherwise in `ends`.
    """

    onward: int  # channels to the transition
    readout: int  # channels to the postprocessor
    unit: str = "f"  # what `evaluations` counts: evaluations of f, or stage networks
    evaluations: int = 0  # for one image; the least where the count depends on the data
    exact: bool = True  # whether it doesn't
    paper_charge: PaperCharge | None = None
    paper_counts: bool = True  # whether the paper's convention covers this period
    tally: SolverStats | None = None

    def __init__(self, onward: int, readout: int | None = None) -> None:
        super().__init__()
        self.onward = onward
        self.readout = onward if readout is None else readout

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        raise NotImplementedError

    def ends(self, last: Tensor, e: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        return last, last

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        e: tuple[Tensor, ...] = ()
        for move in self.walk(y):
            y, e = move.y, move.e
        return self.ends(y, e)
