"""Midpoint network (Chang et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator

import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.spec import ModelSpec


class Antisymmetric(nn.Module):
    """sigma((K - K^T) y): norm and ReLU of a 3x3 convolution minus its own transpose."""

    def __init__(self, k: int, layers: Layers) -> None:
        super().__init__()
        self.conv = layers.conv(k, k, 3)
        self.norm = layers.norm(k)

    def forward(self, y: Tensor) -> Tensor:
        forth = F.conv2d(y, self.conv.weight, padding=1)
        back = F.conv_transpose2d(y, self.conv.weight, padding=1)
        return F.relu(self.norm(self.conv.drop(forth - back)))  # one mask for both, so that K - K^T stays antisymmetric


class Midpoint(Period):
    """y_{n+1} = y_{n-1} + 2h sigma((K_n - K_n^T) y_n), h = 1/r; the first step of a period is Euler's."""

    has_paper_flops = False

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        k, r = spec.k[index], spec.r[index]
        super().__init__(k)
        self.h = 1 / r
        self.steps = nn.ModuleList(Antisymmetric(k, layers) for _ in range(r))
        self.evaluations = r

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        before = y
        for n, step in enumerate(self.steps):
            e = self.h * step(y) if n == 0 else (before - y) + 2 * self.h * step(y)
            before, y = y, y + e
            yield TimeStep(y, (e,))

    def inverse(self, y: Tensor, before: Tensor) -> Tensor:
        """Return the period's input, given its last two states."""
        for step in reversed(self.steps[1:]):
            y, before = before, y - 2 * self.h * step(before)
        return before

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        diagram.lanes.insert(0, "y(n-1)")
        diagram.add("σ((K-Kᵀ)·)", {"y": ""}, "f")
        diagram.add("+", {"y(n-1)": "", "f": "2h"}, "y'")
