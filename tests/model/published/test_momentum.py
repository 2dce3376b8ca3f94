"""Momentum ResNet's stage."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from rkcnn.model.layers import Layers
from rkcnn.model.published.momentum import MomentumStage


def test_a_residual_block_then_momentum_from_rest() -> None:
    torch.manual_seed(0)
    stage = MomentumStage(8, 4, 3, 2, Layers("torch")).eval()
    y = torch.randn(2, 8, 6, 6)
    x = F.relu(stage.entry(y) + stage.projection(y))
    v = torch.zeros_like(x)
    for step in stage.steps:
        v = 0.9 * v + 0.1 * step.get_submodule("f")(x)
        x = x + v
    torch.testing.assert_close(stage(y), x)
