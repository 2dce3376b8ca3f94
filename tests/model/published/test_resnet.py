"""ResNet-1001's block."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from rkcnn.model.layers import Layers
from rkcnn.model.published.resnet import Bottleneck


def test_the_projection_reads_the_pre_activation_with_the_stride() -> None:
    torch.manual_seed(0)
    block = Bottleneck(8, 4, 2, Layers("torch")).eval()
    y = torch.randn(2, 8, 6, 6)
    assert block.shortcut is not None
    nothing = torch.zeros_like(block.conv3.weight)
    block.conv3.weight.data = nothing
    expected = F.conv2d(F.relu(block.norm1(y)), block.shortcut.weight, stride=2)
    assert torch.equal(block(y), expected)


def test_equal_shapes_keep_the_identity() -> None:
    assert Bottleneck(16, 4, 1, Layers("torch")).shortcut is None
