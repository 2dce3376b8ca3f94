"""RKNN, RK-Net and ODE-Net: a numerical method applied to a small f (Wang & Lin 1998, Chen et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.solver import Solver
from rkcnn.model.solver_stats import SolverStats
from rkcnn.model.spec import ModelSpec


class OdeFunction(nn.Module):
    """f(t, y): norm, ReLU, 3x3, norm, ReLU, 3x3, norm, convolutions with bias.

    With time each convolution reads one more leading channel filled with t: 18k^2 + 26k parameters,
    18k^2 + 8k without.
    """

    def __init__(self, k: int, layers: Layers, time: bool = True) -> None:
        super().__init__()
        self.time = time
        self.norm1 = layers.norm(k)
        self.conv1 = layers.conv(k + time, k, 3, bias=True)
        self.norm2 = layers.norm(k)
        self.conv2 = layers.conv(k + time, k, 3, bias=True)
        self.norm3 = layers.norm(k)

    def forward(self, t: float | Tensor, y: Tensor) -> Tensor:
        y = self.conv1(self._timed(t, F.relu(self.norm1(y))))
        y = self.conv2(self._timed(t, F.relu(self.norm2(y))))
        return self.norm3(y)

    def _timed(self, t: float | Tensor, y: Tensor) -> Tensor:
        if not self.time:
            return y
        clock = (torch.ones_like(y[:, :1]) * t).to(y.dtype)
        return torch.cat([clock, y], 1)


class OdePeriod(Period):
    """y(1) of y' = f(t, y), y(0) = y, by the solver in the name; all steps share f.

    Under fixed steps batch norm inside f updates its running statistics at every evaluation, as the
    transplanted ODE-Nets do; how a data-dependent solve treats it: `Solver.walk`.
    """

    def __init__(self, spec: ModelSpec, index: int, f: nn.Module, onward: int) -> None:
        super().__init__(onward)
        self.f = f
        self.solver = Solver.of(spec, index)
        self.evaluations = self.solver.least_evaluations
        self.exact = self.solver.exact
        self.paper_charge = self.solver.paper_charge
        self.paper_counts = self.paper_charge is not None
        self.tally = None if self.exact else SolverStats()

    def start(self, y: Tensor) -> Tensor:
        """The solver's state from the frame's."""
        return y

    def state(self, y: Tensor) -> Tensor:
        """The frame's state from the solver's."""
        return y

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        moment, backwards = None, []
        for moment in self.solver.walk(self.f, self.start(y)):
            backwards.append(moment.backward)
            yield TimeStep(self.state(moment.y), tuple(map(self.state, moment.increments)))
        if self.tally is not None and self.training and moment is not None and not y.is_meta:
            self.tally.add(moment, backwards)


class OdeNet(OdePeriod):
    """RKNN (f knows no time), RKNet and ODENet."""

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        k = spec.k[index]
        super().__init__(spec, index, OdeFunction(k, layers, time=spec.family != "RKNN"), k)
