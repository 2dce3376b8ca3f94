"""Counts of evaluations and convergence, over the solves of training whose length depends on the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rkcnn.solvers.solver_step import BackwardStats, SolverStep


class SolveAverages(NamedTuple):
    """Averages over solves: the share that did not converge, and evaluations of f, forward and backward."""

    unconverged: float
    evaluations: float
    backward_evaluations: float
    backward_products: float


class SolverStats:
    """Sums over solves since the last reset, kept on the device so that adding to them never waits for it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.restore((0, 0.0, 0.0, 0.0, 0.0))

    def sums(self) -> tuple[float, ...]:
        """Return all totals as numbers, for a checkpoint."""
        evaluations = sum((backward.evaluations for backward in self.backwards), self.earlier[0])
        products = sum((backward.products for backward in self.backwards), self.earlier[1])
        return self.solves, float(self.unconverged), float(self.evaluations), evaluations, products

    def restore(self, sums: Sequence[float]) -> None:
        """Restore the totals that `sums()` returned."""
        self.solves = int(sums[0])
        self.unconverged: float | Tensor = sums[1]
        self.evaluations: float | Tensor = sums[2]
        self.earlier = sums[3], sums[4]  # backward evaluations and products from before the restore
        self.backwards: list[BackwardStats] = []

    def add(self, last: SolverStep, backwards: Sequence[BackwardStats | None] = ()) -> None:
        """Count one solve by its last step; `backwards` are filled in by its backward pass, before `read`."""
        self.backwards += [backward for backward in backwards if backward is not None]
        self.solves += 1
        self.unconverged = self.unconverged + _mean(~torch.as_tensor(last.converged))
        self.evaluations = self.evaluations + _mean(torch.as_tensor(last.evaluations))

    def read(self) -> SolveAverages:
        """Return the averages of a solve since the last reset."""
        solves, *sums = self.sums()
        return SolveAverages(*(value / max(solves, 1) for value in sums))


def _mean(x: Tensor) -> Tensor:
    return x.detach().double().mean()
