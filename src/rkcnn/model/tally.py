"""What data-dependent solves took."""

from __future__ import annotations

import torch
from torch import Tensor

from rkcnn.solve.moment import Moment


class Tally:
    """Sums over solves since the last reset, kept on the device so that counting never waits for it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.solves = 0
        self.unconverged: float | Tensor = 0.0
        self.evaluations: float | Tensor = 0.0

    def add(self, moment: Moment) -> None:
        """One solve: the share of its images that did not converge, and their mean evaluations."""
        self.solves += 1
        self.unconverged = self.unconverged + _mean(~torch.as_tensor(moment.converged))
        self.evaluations = self.evaluations + _mean(torch.as_tensor(moment.evaluations))

    def read(self) -> tuple[float, float]:
        """(share of solves that did not converge, evaluations of f a solve)."""
        count = max(self.solves, 1)
        return float(self.unconverged) / count, float(self.evaluations) / count


def _mean(x: Tensor) -> Tensor:
    return x.detach().double().mean()
