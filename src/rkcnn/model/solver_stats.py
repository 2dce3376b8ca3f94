"""What data-dependent solves took in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rkcnn.solvers.solver_step import Backward, SolverStep


class SolveAverages(NamedTuple):
    """The share of solves that did not converge, and a solve's evaluations of f; those of its gradient apart."""

    unconverged: float
    evaluations: float
    backward_evaluations: float
    backward_products: float


class SolverStats:
    """Sums over solves since the last reset, kept on the device so that counting never waits for it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.restore((0, 0.0, 0.0, 0.0, 0.0))

    def sums(self) -> tuple[float, ...]:
        """Everything it holds, as numbers that can be kept."""
        evaluations = sum((backward.evaluations for backward in self.backwards), self.earlier[0])
        products = sum((backward.products for backward in self.backwards), self.earlier[1])
        return self.solves, float(self.unconverged), float(self.evaluations), evaluations, products

    def restore(self, sums: Sequence[float]) -> None:
        """Stand where `sums` was asked."""
        self.solves = int(sums[0])
        self.unconverged: float | Tensor = sums[1]
        self.evaluations: float | Tensor = sums[2]
        self.earlier = sums[3], sums[4]  # of gradients taken before
        self.backwards: list[Backward] = []

    def add(self, moment: SolverStep, backwards: Sequence[Backward | None] = ()) -> None:
        """One solve by its last moment, and what its steps' gradients will have taken when `read` asks."""
        self.backwards += [backward for backward in backwards if backward is not None]
        self.solves += 1
        self.unconverged = self.unconverged + _mean(~torch.as_tensor(moment.converged))
        self.evaluations = self.evaluations + _mean(torch.as_tensor(moment.evaluations))

    def read(self) -> SolveAverages:
        """What a solve took on average."""
        solves, *sums = self.sums()
        return SolveAverages(*(value / max(solves, 1) for value in sums))


def _mean(x: Tensor) -> Tensor:
    return x.detach().double().mean()
