"""Initial weights by frame (SPEC 5)."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from rkcnn.model.create import create_model


def test_several_periods_start_as_the_paper_says() -> None:
    torch.manual_seed(0)
    network = create_model("RKCNN-I-2_2@k=64")
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_in = module.weight[0].numel()
            assert float(module.weight.detach().std()) == pytest.approx(math.sqrt(2 / fan_in), rel=0.1)
        elif isinstance(module, nn.Linear):
            bound = math.sqrt(6 / sum(module.weight.shape))
            assert bound * 0.9 < float(module.weight.detach().abs().max()) <= bound
            assert not module.bias.any()


def test_one_period_keeps_torchs_defaults() -> None:
    torch.manual_seed(0)
    network = create_model("RKCNN-I-2@k=32", channels=1)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            bound = 1 / math.sqrt(module.weight[0].numel())  # kaiming_uniform with a = sqrt 5
            assert 0.8 * bound < float(module.weight.detach().abs().max()) <= bound
