"""Augmented neural ODE (Dupont et al. 2019)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from rkcnn.model.layers import Layers
from rkcnn.model.spec import ModelSpec
from rkcnn.model.steps.ode import OdeFunction, OdePeriod


class Anode(OdePeriod):
    """p channels of zeros appended, f on k + p, and all k + p go on."""

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        assert spec.p is not None
        width = spec.k[index] + spec.p
        super().__init__(spec, index, OdeFunction(width, layers), width)
        self.p = spec.p
        self.paper_counts, self.paper_charge = False, None

    def start(self, y: Tensor) -> Tensor:
        return F.pad(y, (0, 0, 0, 0, 0, self.p))
