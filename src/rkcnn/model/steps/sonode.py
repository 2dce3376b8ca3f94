"""Second-order neural ODE (Norcliffe et al. 2020)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers
from rkcnn.model.spec import ModelSpec
from rkcnn.model.steps.ode import OdeFunction, OdePeriod


class Acceleration(nn.Module):
    """(y, v)' = (v, f(t, v)): the acceleration reads the velocity alone, as in the public code."""

    def __init__(self, f: OdeFunction) -> None:
        super().__init__()
        self.acceleration = f

    def forward(self, t: float | Tensor, state: Tensor, evaluation: int = 0) -> Tensor:
        v = state.chunk(2, 1)[1]
        return torch.cat([v, self.acceleration(t, v, evaluation).to(v.dtype)], 1)


class Sonode(OdePeriod):
    """(y, v)' = (v, f(t, v)), v(0) = g(y) with g built like f, at t = 0; y goes on and v does not."""

    part_titles: ClassVar = {"velocity": "initial velocity"}

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        k = spec.k[index]
        super().__init__(spec, index, Acceleration(OdeFunction(k, layers)), k)
        self.velocity = OdeFunction(k, layers)
        self.has_paper_flops, self.paper_solve_cost = False, None

    def start(self, y: Tensor) -> Tensor:
        v = self.velocity(0.0, y)
        return torch.cat([y.to(v.dtype), v], 1)

    def state(self, y: Tensor) -> Tensor:
        return y.chunk(2, 1)[0]

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        super().draw_step(spec, diagram)
        diagram.note += "; y is the state with its velocity"
