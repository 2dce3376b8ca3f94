"""DenseNet's block: Phase I alone, with all stages concatenated."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep
from rkcnn.model.spec import ModelSpec
from rkcnn.model.steps.rkcnn import RKStep, draw_stages


class DenseNet(Period):
    """x_i = H_i({y, x_1 .. x_{i-1}}); {y, x_1 .. x_s} goes on and is read out."""

    unit = "stage"

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        s, k = spec.stages[index], spec.k[index]
        super().__init__((s + 1) * k)
        self.step = RKStep(s, k, layers)
        self.evaluations = self.step.runs

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        x, _ = self.step(y)
        yield TimeStep(torch.cat([y, *x], 1), tuple(x), tuple(x))

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        draw_stages(diagram, spec.stages[0], concatenates=True)
