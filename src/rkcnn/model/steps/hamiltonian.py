"""Hamiltonian network (Chang et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.spec import ModelSpec
from rkcnn.model.steps.leapfrog import TiedConv


class Hamiltonian(Period):
    """Splits the channels into (y, z):  z <- z - h K1^T sigma(K1 y),  y <- y + h K2^T sigma(K2 z),  h = 1/r."""

    has_paper_flops = False
    part_titles: ClassVar = {"first": "half-step of z", "second": "half-step of y"}

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        k, r = spec.k[index], spec.r[index]
        super().__init__(k)
        self.h = 1 / r
        self.first = nn.ModuleList(TiedConv(k // 2, k // 2, layers) for _ in range(r))
        self.second = nn.ModuleList(TiedConv(k // 2, k // 2, layers) for _ in range(r))
        self.evaluations = 2 * r

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        upper, lower = y.chunk(2, 1)
        for first, second in zip(self.first, self.second, strict=True):
            down = -self.h * first(upper)
            lower = lower + down
            up = self.h * second(lower)
            upper = upper + up
            yield TimeStep(torch.cat([upper, lower], 1), (torch.cat([up, down], 1),))

    def inverse(self, y: Tensor) -> Tensor:
        """Return the period's input, given its output."""
        upper, lower = y.chunk(2, 1)
        for first, second in zip(reversed(self.first), reversed(self.second), strict=True):
            upper = upper - self.h * second(lower)
            lower = lower + self.h * first(upper)
        return torch.cat([upper, lower], 1)

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        diagram.lanes.append("z")
        diagram.add("K₁ᵀσ(K₁·)", {"y": ""}, "a")
        diagram.add("+", {"z": "", "a": "-h"}, "z'")
        diagram.add("K₂ᵀσ(K₂·)", {"z'": ""}, "b")
        diagram.add("+", {"y": "", "b": "h"}, "y'")
