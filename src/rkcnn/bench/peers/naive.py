"""RKCNN's and DenseNet's steps as one would write them first: Algorithm 1 line by line, in plain torch.

It shares the weights of our modules and none of their code, and is the peer that every machine has.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.bench.plan import CannotRun, PeerChoice
from rkcnn.model.network import Network
from rkcnn.model.spec import norms_of


def build_naive(peer: PeerChoice, network: Network) -> nn.Module:
    """Return our frame with the steps written naively; CannotRun for networks that have no such writing."""
    spec = network.spec
    plain = spec.family == "DenseNet" or (
        spec.family == "RKCNN" and spec.merge != "concat" and not spec.shared and spec.y is not False
    )
    if not plain or norms_of(spec)[1] != "bn":
        raise CannotRun(f"there is no naive writing of {network.name}; there is one of RKCNN and DenseNet")
    copied = copy.deepcopy(network)
    periods: list[nn.Module] = []
    for period in copied.periods:
        if spec.family == "DenseNet":
            periods.append(NaiveDenseBlock(period.get_submodule("step.guess")))
        else:
            steps = period.get_submodule("steps")
            periods.append(NaivePeriod(steps, spec.variant, spec.sweeps or 0))
    copied.periods = nn.ModuleList(periods)
    return copied


class NaivePeriod(nn.Module):
    """r time-steps of Algorithm 1."""

    def __init__(self, steps: nn.Module, variant: str, sweeps: int) -> None:
        super().__init__()
        self.steps, self.variant, self.sweeps = steps, variant, sweeps

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        for step in self.steps.children():
            y = self._step(step, y)
        return y, y

    def _step(self, step: nn.Module, y: Tensor) -> Tensor:
        x: list[Tensor] = []
        for stage in step.get_submodule("guess").children():
            x.append(apply_stage(stage, torch.cat([y, *x], 1)))
        e = x
        for _ in range(self.sweeps):
            before, e = e, list(e)
            for i, stage in enumerate(step.get_submodule("refine").children()):
                others = [(e if self.variant == "I" else before)[j] for j in range(len(x)) if j != i]
                e[i] = apply_stage(stage, torch.cat([y, *others], 1))
        for increment in e:
            y = y + increment
        return y


class NaiveDenseBlock(nn.Module):
    """Each layer reads the input and all layers before it, which are concatenated."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        for layer in self.layers.children():
            y = torch.cat([y, apply_stage(layer, y)], 1)
        return y, y


def apply_stage(stage: nn.Module, x: Tensor) -> Tensor:
    """norm, ReLU, 1x1, norm, ReLU, 3x3, by the weights of one of our stages."""
    x = F.conv2d(F.relu(_normalise(stage.get_submodule("norm1"), x)), stage.get_parameter("narrow.weight"))
    return F.conv2d(F.relu(_normalise(stage.get_submodule("norm2"), x)), stage.get_parameter("conv.weight"), padding=1)


def _normalise(norm: nn.Module, x: Tensor) -> Tensor:
    assert isinstance(norm, nn.BatchNorm2d)
    mean, var = norm.running_mean, norm.running_var
    return F.batch_norm(x, mean, var, norm.weight, norm.bias, norm.training, norm.momentum or 0.0, norm.eps)
