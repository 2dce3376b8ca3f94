"""What the tests of the solvers share: a problem whose solution is known, counts of evaluations, tableaus."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import log2

import torch
from torch import Tensor

from rkcnn.solvers.methods import EMBEDDED, TABLEAUS
from rkcnn.solvers.solve import Solution, solve
from rkcnn.solvers.solver_step import Field, SolverStep
from rkcnn.solvers.tableau import Tableau

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


def by(method: str, f: object, y0: Tensor, t: object, **settings: object) -> Solution:
    """Solve with equal steps, or where a method can with adaptive ones."""
    steps = None if method in EMBEDDED else settings.pop("steps", 8)
    settings = {"tol": 1e-9, **settings, "steps": steps}
    return solve(f, y0, t, method, **settings)  # type: ignore[arg-type]


BOGACKI_SHAMPINE = Tableau(
    "bs3",
    order=3,
    a=((0, 0, 0, 0), (1 / 2, 0, 0, 0), (0, 3 / 4, 0, 0), (2 / 9, 1 / 3, 4 / 9, 0)),
    b=(2 / 9, 1 / 3, 4 / 9, 0),
    c=(0, 1 / 2, 3 / 4, 1),
    embedded=(7 / 24, 1 / 4, 1 / 3, 1 / 8),
    embedded_order=2,
)
HEUN_EULER = Tableau("heun_euler", 2, ((0, 0), (1, 0)), (1 / 2, 1 / 2), (0, 1), embedded=(1, 0), embedded_order=1)
_G = 1 - 0.5**0.5
SDIRK2 = Tableau("sdirk2", 2, a=((_G, 0), (1 - _G, _G)), b=(1 - _G, _G), c=(_G, 1))
OWN_TABLEAUS = [TABLEAUS["rk4"], BOGACKI_SHAMPINE, HEUN_EULER, SDIRK2]
