"""ResNet-1001's block."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from rkcnn.model.create import create_model
from rkcnn.model.layers import Layers
from rkcnn.model.published.resnet import Bottleneck
from rkcnn.report.paper import MISPRINTS


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


@pytest.mark.parametrize(("classes", "count"), [(10, 10_178_490), (100, 10_201_620)])
def test_the_papers_10_2_million_are_without_norms(classes: int, count: int) -> None:
    with torch.device("meta"):
        network = create_model("ResNet-1001", classes)
    assert sum(p.numel() for name, p in network.named_parameters() if "norm" not in name) == count
    assert (
        f"without the norms' parameters, {count:,}"
        in MISPRINTS["tb:cifar_sota", "ResNet-1001", "params" if classes == 10 else "params_100"]
    )
