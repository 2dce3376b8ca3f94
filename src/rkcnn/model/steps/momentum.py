"""Momentum residual steps (Sander et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers
from rkcnn.model.period import PaperSolveCost, Period, TimeStep
from rkcnn.model.spec import ModelSpec
from rkcnn.model.steps.resnet import residual


class MomentumStep(nn.Module):
    """v <- g v + (1 - g) f(y),  y <- y + v,  g = 0.9."""

    gamma = 0.9
    paper_solve_cost = PaperSolveCost(evaluations=1, operations=4)

    def __init__(self, f: nn.Module) -> None:
        super().__init__()
        self.f = f

    def forward(self, y: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        v = self.gamma * v + (1 - self.gamma) * self.f(y)
        return y + v, v

    def inverse(self, y: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state and velocity before the step."""
        y = y - v
        return y, (v - (1 - self.gamma) * self.f(y)) / self.gamma


class Momentum(Period):
    """v <- g v + (1 - g) f(y), y <- y + v, g = 0.9, r times with weights of their own.

    v starts each period at zero, or is learned from y.
    """

    part_titles: ClassVar = {"velocity": "initial velocity"}

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        k, r = spec.k[index], spec.r[index]
        super().__init__(k)
        self.velocity = residual(k, layers) if spec.v0 == "learned" else None
        self.steps = nn.ModuleList(MomentumStep(residual(k, layers)) for _ in range(r))
        self.evaluations = r

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        v = torch.zeros_like(y) if self.velocity is None else self.velocity(y)
        for step in self.steps:
            y, v = step(y, v)
            yield TimeStep(y, (v,))

    def inverse(self, y: Tensor, v: Tensor) -> Tensor:
        """Return the period's input, given its last state and velocity (the last increment)."""
        for step in reversed(self.steps):
            assert isinstance(step, MomentumStep)
            y, v = step.inverse(y, v)
        return y

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        diagram.lanes.append("v")
        diagram.add("f", {"y": ""}, "f(y)")
        diagram.add("+", {"v": "0.9", "f(y)": "0.1"}, "v'")
        diagram.add("+", {"y": "", "v'": ""}, "y'")
