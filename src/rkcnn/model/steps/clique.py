"""CliqueNet's block: Phase II reads no y and has Phase I's weights; all stages are concatenated."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.spec import ModelSpec
from rkcnn.model.steps.rkcnn import RKStep, draw_stages


class CliqueNet(Period):
    """Phase I as a dense block, then x_j <- layer_j({x_i, i != j}) with the newest values.

    {x_1 .. x_s} goes on, {y, x_1 .. x_s} is read out.
    """

    unit = "stage"

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        s, k = spec.stages[index], spec.k[index]
        super().__init__(s * k, (s + 1) * k)
        self.step = RKStep(s, k, layers, newest=True, sweeps=spec.sweeps or 1, y=False, shared=True)
        self.evaluations = self.step.runs

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        x, e = self.step(y)
        yield TimeStep(torch.cat([y, *e], 1), tuple(e), tuple(x))

    def outputs(self, last: Tensor, e: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        return torch.cat(e, 1), last

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        draw_stages(diagram, spec.stages[0], spec.sweeps or 1, newest=True, y=False, concatenates=True)
