"""DenseNet's layer and widths."""

from __future__ import annotations

import torch

from rkcnn.model.create import create_model
from rkcnn.model.layers import Conv, Layers
from rkcnn.model.published.densenet import DenseLayer


def test_a_layer_appends_k_channels() -> None:
    x = torch.randn(2, 6, 5, 5)
    for bottleneck in (False, True):
        out = DenseLayer(6, 4, bottleneck, Layers("torch"))(x)
        assert out.shape[1] == 10
        assert torch.equal(out[:, :6], x)


def test_compression_halves() -> None:
    with torch.device("meta"):
        network = create_model("DenseNet-BC-L250-k24")
    first = network.get_submodule("transitions.0.conv")
    assert isinstance(first, Conv)
    assert (first.in_channels, first.out_channels) == (48 + 41 * 24, (48 + 41 * 24) // 2)
