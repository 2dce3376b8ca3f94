"""Residual blocks."""

from __future__ import annotations

import pytest
import torch

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.resnet import ResNet, bottleneck, residual


@pytest.mark.parametrize("k", [8, 32])
def test_parameters(k: int) -> None:
    layers = Layers("gn")
    assert sum(p.numel() for p in residual(k, layers).parameters()) == 18 * k * k + 4 * k
    assert sum(p.numel() for p in bottleneck(k, layers).parameters()) == 17 * k * k // 16 + 3 * k


def test_each_step_adds_its_own_residual() -> None:
    period = ResNet(parse("ResNet@k=8,r=2"), 0, Layers("gn"))
    y = torch.randn(2, 8, 5, 5)
    middle = y + period.steps[0](y)
    assert torch.equal(period(y)[0], middle + period.steps[1](middle))
