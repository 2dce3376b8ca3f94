"""Augmented neural ODE (Dupont et al. 2019)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from rkcnn.model.drawing import Diagram
from rkcnn.model.layers import Layers
from rkcnn.model.spec import ModelSpec
from rkcnn.model.steps.ode import OdeFunction, OdePeriod


class Anode(OdePeriod):
    """Appends p channels of zeros to y, applies f to all k + p channels, and passes them all on."""

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        assert spec.p is not None
        width = spec.k[index] + spec.p
        super().__init__(spec, index, OdeFunction(width, layers), width)
        self.p = spec.p
        self.has_paper_flops, self.paper_solve_cost = False, None

    def start(self, y: Tensor) -> Tensor:
        return F.pad(y, (0, 0, 0, 0, 0, self.p))

    @classmethod
    def draw_step(cls, spec: ModelSpec, diagram: Diagram) -> None:
        super().draw_step(spec, diagram)
        diagram.note += f"; y has {spec.p} more channel{'s' * (spec.p != 1)}, zeros at first"
