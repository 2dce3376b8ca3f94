"""RKNN, RK-Net and ODE-Net: a numerical method applied to a small network f (Wang & Lin 1998, Chen et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.drawing import Diagram, fraction
from rkcnn.model.fold import ChannelAffine
from rkcnn.model.layers import Conv, Layers, has_autocast, trains_fused
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.solver import Solver
from rkcnn.model.spec import ModelSpec
from rkcnn.solvers.methods import ADAMS, BASHFORTH, MOULTON, TABLEAUS
from rkcnn.solvers.solver_step import HALF, SolverStats, Time


class OdeFunction(nn.Module):
    """f(t, y): norm, ReLU, 3x3, norm, ReLU, 3x3, norm, convolutions with bias.

    With `time` each convolution reads one more channel, the first, filled with t: 18k^2 + 26k parameters. Without it
    there are 18k^2 + 8k. A network in half precision computes f in it too, while the solver adds up in float32.
    `evaluation` counts the evaluations of a solve, for norms with running statistics for each.
    """

    folded_norms: ClassVar = {"conv1": "norm2", "conv2": "norm3"}
    fused: Callable[[OdeFunction, Time, Tensor, int], Tensor] | None = None  # f(t, y) in kernels of model/fast/
    takes_tf32 = False  # whether they are used without autocast too, and round float32 to tf32

    def __init__(self, k: int, layers: Layers, time: bool = True) -> None:
        super().__init__()
        self.time = time
        self.norm1 = layers.norm(k)
        self.conv1 = layers.conv(k + time, k, 3, bias=True)
        self.norm2 = layers.norm(k)
        self.conv2 = layers.conv(k + time, k, 3, bias=True)
        self.norm3 = layers.norm(k)

    def forward(self, t: Time, y: Tensor, evaluation: int = 0) -> Tensor:
        one_time = not isinstance(t, Tensor) or t.numel() == 1  # and not one for each image
        if self.fused is not None and one_time and trains_fused(self, y, self.takes_tf32):
            return self.fused(self, t, y, evaluation)
        if y.dtype != self.conv1.weight.dtype and not has_autocast(y):
            y = y.to(self.conv1.weight.dtype)
        y = self._convolve(self.conv1, t, F.relu(_normalise(self.norm1, y, evaluation)))
        y = self._convolve(self.conv2, t, F.relu(_normalise(self.norm2, y, evaluation)))
        return _normalise(self.norm3, y, evaluation)

    def _convolve(self, conv: Conv, t: Time, y: Tensor) -> Tensor:
        """Return W * (t, y) + b as W_y * y + (W_t * t + b), where * convolves.

        The second part is the same for every image, so that no concatenation is stored, and y keeps its k channels,
        which are often a multiple of 8, as fast convolutions need.
        """
        if not self.time:
            return conv(y)
        times = (torch.ones_like(y[:1, :1]) * t).to(y.dtype)
        constant = F.conv2d(times, conv.weight[:, :1], conv.bias, padding=1)
        return conv.drop(F.conv2d(y, conv.weight[:, 1:], padding=1) + constant)


def _normalise(norm: nn.Module, y: Tensor, evaluation: int) -> Tensor:
    """Apply a norm; a group norm has no running statistics, and a folded norm may be an identity."""
    return norm(y, evaluation) if isinstance(norm, BatchNorm | ChannelAffine) else norm(y)


class OdePeriod(Period):
    """y(1) of y' = f(t, y), y(0) = y, by the solver in the name; all steps share f.

    With fixed steps, batch norm inside f updates its running statistics at every evaluation, as in the ODE-Nets that
    the paper transplants; with statistics=each, every evaluation has its own. For other solves see `Solver.walk`.
    `f` takes t, y and, with statistics=each, the number of the evaluation.
    """

    reads_time: ClassVar[bool] = True  # whether f depends on t

    def __init__(self, spec: ModelSpec, index: int, f: nn.Module, width: int) -> None:
        super().__init__(width)
        self.f = f
        self.solver = Solver.of(spec, index)
        self.evaluations = self.solver.least_evaluations
        if self.solver.numbered:
            for norm in (module for module in f.modules() if isinstance(module, BatchNorm)):
                norm.separate(self.evaluations)
        self.exact = self.solver.exact
        self.paper_solve_cost = self.solver.paper_solve_cost
        self.has_paper_flops = self.paper_solve_cost is not None
        self.solver_stats = None if self.exact else SolverStats()

    def start(self, y: Tensor) -> Tensor:
        """Return the solver's first state, given the frame's y."""
        return y

    def state(self, y: Tensor) -> Tensor:
        """Return the frame's y, given a state of the solver."""
        return y

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        # Solvers return at least float32, which autocast rounds where it has to; without it, layers need y's precision.
        half = y.dtype in HALF and not has_autocast(y)

        def state(solved: Tensor) -> Tensor:
            return self.state(solved).to(y.dtype) if half else self.state(solved)

        step, backwards = None, []
        for step in self.solver.walk(self.f, self.start(y)):
            backwards.append(step.backward)
            yield TimeStep(state(step.y), tuple(map(state, step.increments)), t=step.t)
        counts = self.training and torch.is_grad_enabled() and not y.is_meta  # a trajectory is no training
        if self.solver_stats is not None and step is not None and counts:
            self.solver_stats.add(step, backwards)

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        if spec.solver in ADAMS:
            _draw_adams(diagram, corrects=spec.solver == "abm")
            return
        tableau = TABLEAUS[spec.solver or ""]
        z = [f"z{i + 1}" for i in range(tableau.stages)]
        for i, (row, node) in enumerate(zip(tableau.a, tableau.c, strict=True)):
            time = "t" if node == 0 else "t+h" if node == 1 else f"t+{fraction(node)}h"
            diagram.add(f"f({time}, ·)" if cls.reads_time else "f", {"y": "", **_weighted(z, row)}, z[i])
        if tableau.kind != "explicit":
            diagram.phase("solved together", tableau.stages)
        diagram.add("+", {"y": "", **_weighted(z, tableau.b)}, "y'")
        diagram.note = f"{tableau.name}, order {tableau.order}; weights are times h"


def _draw_adams(diagram: Diagram, corrects: bool) -> None:
    slopes = ["f(n)", "f(n-1)", "f(n-2)", *([] if corrects else ["f(n-3)"])]
    diagram.lanes.extend(slopes[1:])
    diagram.add("f(t, ·)", {"y": ""}, slopes[0])
    predictor = {"y": "", **_weighted(slopes, BASHFORTH[len(slopes)])}
    diagram.add("predict", predictor, "p" if corrects else "y'")
    if corrects:
        diagram.add("f(t+h, ·)", {"p": "", "y'": "again"}, "f(n+1)")
        diagram.add("correct", {"y": "", **_weighted(["f(n+1)", *slopes], MOULTON)}, "y'")
        diagram.phase("repeated until it settles, at most 4 times", 2)
    diagram.note = "after two starting steps of the 3/8 rule; weights are times h"


def _weighted(lanes: Sequence[str], weights: Sequence[float]) -> dict[str, str]:
    """Return the lanes whose weight isn't zero, each with its weight as a fraction."""
    return {lane: fraction(weight) for lane, weight in zip(lanes, weights, strict=True) if weight != 0}


class OdeNet(OdePeriod):
    """y(1) of y' = f(t, y), y(0) = y, by the solver in the name: RKNet and ODENet."""

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        k = spec.k[index]
        super().__init__(spec, index, OdeFunction(k, layers, self.reads_time), k)


class Rknn(OdeNet):
    """y(1) of y' = f(y), y(0) = y, by the solver in the name: RKNN, whose f does not depend on t."""

    reads_time = False
