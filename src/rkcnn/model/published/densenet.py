"""DenseNet and DenseNet-BC (Huang et al. 2017)."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.frame import Readout, Transition
from rkcnn.model.layers import Layers
from rkcnn.model.network import Published


class DenseLayer(nn.Module):
    """{x, H(x)}, H = norm, ReLU, 3x3 to k channels; with a bottleneck first norm, ReLU, 1x1 to 4k."""

    folded_norms: ClassVar = {"convs.0": "norms.1"}

    def __init__(self, inputs: int, k: int, bottleneck: bool, layers: Layers) -> None:
        super().__init__()
        widths = [inputs, 4 * k, k] if bottleneck else [inputs, k]
        sizes = [1, 3] if bottleneck else [3]
        self.norms = nn.ModuleList(layers.norm(width) for width in widths[:-1])
        self.convs = nn.ModuleList(
            layers.conv(a, b, size) for a, b, size in zip(widths[:-1], widths[1:], sizes, strict=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        new = x
        for norm, conv in zip(self.norms, self.convs, strict=True):
            new = conv(F.relu(norm(new)))
        return torch.cat([x, new], 1)


class DenseNetOriginal(Published):
    """Depth L, growth k: a 2k-channel stem and three dense blocks; BC: bottlenecks, transitions halve the width."""

    def __init__(self, classes: int, channels: int, dropout: float, depth: int, k: int, bc: bool) -> None:
        layers = Layers("torch", dropout)
        count = (depth - 4) // (6 if bc else 3)
        width = 2 * k
        blocks, transitions = nn.ModuleList(), nn.ModuleList()
        for block in range(3):
            blocks.append(nn.Sequential(*(DenseLayer(width + i * k, k, bc, layers) for i in range(count))))
            width += count * k
            if block < 2:
                onward = width // 2 if bc else width
                transitions.append(Transition(width, onward, layers, attention=False))
                width = onward
        super().__init__(classes, channels, width)
        self.stem = nn.Conv2d(channels, 2 * k, 3, padding=1, bias=False)
        self.blocks, self.transitions = blocks, transitions
        self.readout = Readout(layers.norm(width))

    def features(self, images: Tensor) -> Tensor:
        y = self.stem(images)
        for i, block in enumerate(self.blocks):
            y = block(y)
            if i < len(self.transitions):
                y = self.transitions[i](y)
        return self.readout(y)
