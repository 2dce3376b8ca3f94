"""Momentum ResNet's stage."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rkcnn.model.create import create_model
from rkcnn.model.layers import Layers
from rkcnn.model.published import momentum
from rkcnn.model.published.momentum import MomentumStage
from rkcnn.report.paper import MISPRINTS


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


@pytest.mark.parametrize(("classes", "count"), [(10, 124_850_506), (100, 125_034_916)])
def test_a_network_of_double_width(classes: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one whose FLOPs the paper prints: its bottlenecks are twice as wide, its outputs are not."""

    def wide(inputs: int, width: int, stride: int, layers: Layers) -> nn.Sequential:
        convs = (
            layers.conv(inputs, 2 * width, 1),
            layers.conv(2 * width, 2 * width, 3),
            layers.conv(2 * width, 4 * width, 1),
        )
        return nn.Sequential(*(part for conv in convs for part in (conv, layers.norm(conv.out_channels))))

    monkeypatch.setattr(momentum, "bottleneck", wide)
    with torch.device("meta"):
        network = create_model("MomentumResNet-101", classes)
    assert sum(p.numel() for p in network.parameters()) == count
    assert (
        f"{count:,} parameters"
        in MISPRINTS["tb:cifar_sota", "MomentumResNet-101", "params" if classes == 10 else "params_100"]
    )
