"""Leapfrog network (Chang et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator

import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.spec import ModelSpec


class TiedConv(nn.Module):
    """K^T sigma(K y): a 3x3 convolution, then norm and ReLU, then the same convolution transposed."""

    def __init__(self, inputs: int, outputs: int, layers: Layers) -> None:
        super().__init__()
        self.conv = layers.conv(inputs, outputs, 3)
        self.norm = layers.norm(outputs)

    def forward(self, y: Tensor) -> Tensor:
        hidden = F.relu(self.norm(self.conv(y)))
        return self.conv.drop(F.conv_transpose2d(hidden, self.conv.weight, padding=1))


class Leapfrog(Period):
    """y_{n+1} = 2 y_n - y_{n-1} - h^2 K_n^T sigma(K_n y_n), h = 1/r, starting at rest (y_{-1} = y_0)."""

    has_paper_flops = False

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        k, r = spec.k[index], spec.r[index]
        super().__init__(k)
        self.h = 1 / r
        self.steps = nn.ModuleList(TiedConv(k, k, layers) for _ in range(r))
        self.evaluations = r

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        before = y
        for step in self.steps:
            e = (y - before) - self.h**2 * step(y)
            before, y = y, y + e
            yield TimeStep(y, (e,))

    def inverse(self, y: Tensor, before: Tensor) -> Tensor:
        """Return the period's input, given its last two states."""
        for step in reversed(self.steps):
            y, before = before, 2 * before - y - self.h**2 * step(before)
        return y

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        diagram.lanes.insert(0, "y(n-1)")
        diagram.add("Kᵀσ(K·)", {"y": ""}, "f")
        diagram.add("+", {"y": "2", "y(n-1)": "-1", "f": "-h²"}, "y'")
