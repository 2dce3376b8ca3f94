"""What the tests of the solvers share: a problem whose solution is known, and a count of evaluations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import log2

import torch
from torch import Tensor

from rkcnn.solvers.solver_step import Field, SolverStep

MIX = torch.tensor([[0.3, -1.1], [0.9, 0.4]], dtype=torch.float64)


def exact(t: float | Tensor) -> Tensor:
    """y(t) = (sin 3t, cos t + t), one row a time."""
    time = torch.as_tensor(t, dtype=torch.float64).reshape(-1, 1)
    return torch.cat([torch.sin(3 * time), torch.cos(time) + time], 1)


def field(t: float | Tensor, y: Tensor) -> Tensor:
    """f with f(t, y(t)) = y'(t): nonlinear and coupled in y, and it depends on t, so that a wrong c shows."""
    time = torch.as_tensor(t, dtype=torch.float64).reshape(-1, 1)
    slope = torch.cat([3 * torch.cos(3 * time), 1 - torch.sin(time)], 1)
    return slope + torch.sin(y @ MIX.to(y)) - torch.sin(exact(t) @ MIX)


class Counted:
    """f that remembers its calls: how many, and the dtype and time of each."""

    def __init__(self, f: Field = field) -> None:
        self.f = f
        self.times: list[float | Tensor] = []
        self.dtypes: set[torch.dtype] = set()

    def __call__(self, t: float | Tensor, y: Tensor) -> Tensor:
        self.times.append(t)
        self.dtypes.add(y.dtype)
        return self.f(t, y)

    @property
    def calls(self) -> int:
        return len(self.times)


def last(taken: Iterable[SolverStep]) -> SolverStep:
    *_, step = taken
    return step


def slopes(errors: list[float]) -> list[float]:
    """Of log error on log h, where each step is half of the one before."""
    return [log2(coarse / fine) for coarse, fine in pairwise(errors)]


def greatest(value: int | Tensor) -> int:
    """A count of the whole batch as a number: what was really called."""
    return int(torch.as_tensor(value).max())


def conv_field(channels: int = 4, seed: int = 0) -> tuple[torch.nn.Conv2d, Field]:
    """f(t, y) = tanh(conv(y) + t), in the precision that autocast chooses."""
    torch.manual_seed(seed)
    conv = torch.nn.Conv2d(channels, channels, 3, padding=1)
    return conv, lambda t, y: torch.tanh(conv(y) + t)
