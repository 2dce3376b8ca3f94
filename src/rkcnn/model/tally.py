"""What data-dependent solves took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rkcnn.solve.moment import Backward, Moment


class Took(NamedTuple):
    """The share of solves that did not converge, and a solve's evaluations of f; those of its gradient apart."""

    unconverged: float
    evaluations: float
    backward_evaluations: float
    backward_products: float


class Tally:
    """Sums over solves since the last reset, kept on the device so that counting never waits for it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.backwards: list[Backward] = []
        self.solves = 0
        self.unconverged: float | Tensor = 0.0
        self.evaluations: float | Tensor = 0.0

    def add(self, moment: Moment, backwards: Sequence[Backward | None] = ()) -> None:
        """One solve by its last moment, and what its steps' gradients will have taken when `read` asks."""
        self.backwards += [backward for backward in backwards if backward is not None]
        self.solves += 1
        self.unconverged = self.unconverged + _mean(~torch.as_tensor(moment.converged))
        self.evaluations = self.evaluations + _mean(torch.as_tensor(moment.evaluations))

    def read(self) -> Took:
        """What a solve took on average."""
        count = max(self.solves, 1)
        return Took(
            float(self.unconverged) / count,
            float(self.evaluations) / count,
            sum(backward.evaluations for backward in self.backwards) / count,
            sum(backward.products for backward in self.backwards) / count,
        )


def _mean(x: Tensor) -> Tensor:
    return x.detach().double().mean()
