"""Linear multistep network (Lu et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.spec import ModelSpec
from rkcnn.model.steps.resnet import residual


class LinearMultistep(Period):
    """y_{n+1} = (1 - c_n) y_n + c_n y_{n-1} + f_n(y_n); the first step of a period is residual.

    c_n is a learned scalar that starts in U(-0.1, 0). There is no `inverse`: y_{n-1} = (...) / c_n has no meaning at
    c_n = 0, and c_n starts near it.
    """

    has_paper_flops = False

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        k, r = spec.k[index], spec.r[index]
        super().__init__(k)
        self.steps = nn.ModuleList(residual(k, layers) for _ in range(r))
        self.c = nn.Parameter(torch.empty(r - 1).uniform_(-0.1, 0.0))
        self.evaluations = r

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        before = y
        for n, step in enumerate(self.steps):
            e = step(y)
            if n > 0:
                e = e + self.c[n - 1] * (before - y)
            before, y = y, y + e
            yield TimeStep(y, (e,))

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        diagram.lanes.insert(0, "y(n-1)")
        diagram.add("F", {"y": ""}, "f")
        diagram.add("+", {"y": "1-c", "y(n-1)": "c", "f": ""}, "y'")
