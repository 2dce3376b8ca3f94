"""The dense block."""

from __future__ import annotations

import torch

from rkcnn.model.layers import Layers
from rkcnn.model.spec import parse
from rkcnn.model.steps.dense import DenseNet


def test_everything_goes_on_and_is_read_out() -> None:
    block = DenseNet(parse("DenseNet-3@k=8"), 0, Layers("bn"))
    y = torch.randn(2, 8, 5, 5)
    onward, readout = block(y)
    assert (block.transition_channels, block.classifier_channels, block.evaluations) == (32, 32, 3)
    assert onward is readout
    assert onward.shape[1] == 32
    assert torch.equal(onward[:, :8], y)


def test_each_layer_reads_all_before_it() -> None:
    block = DenseNet(parse("DenseNet-2@k=4"), 0, Layers("bn")).eval()
    y = torch.randn(1, 4, 5, 5)
    (move,) = block.walk(y)
    first = block.step.guess[0](y)
    assert torch.equal(move.x[0], first)
    assert torch.equal(move.x[1], block.step.guess[1](y, first))
