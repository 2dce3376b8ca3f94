"""Pre-activation ResNet-1001 (He et al. 2016, "Identity mappings")."""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.frame import Readout
from rkcnn.model.layers import Layers
from rkcnn.model.network import Published


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 to 4 times the width, each after norm and ReLU; the stride is in the first 1x1.

    Where the shape changes, the shortcut is a 1x1 convolution of the pre-activation.
    """

    folded_norms: ClassVar = {"conv1": "norm2", "conv2": "norm3"}

    def __init__(self, inputs: int, width: int, stride: int, layers: Layers) -> None:
        super().__init__()
        outputs = 4 * width
        self.norm1 = layers.norm(inputs)
        self.conv1 = layers.conv(inputs, width, 1, stride=stride)
        self.norm2 = layers.norm(width)
        self.conv2 = layers.conv(width, width, 3)
        self.norm3 = layers.norm(width)
        self.conv3 = layers.conv(width, outputs, 1)
        self.shortcut = layers.conv(inputs, outputs, 1, stride=stride) if inputs != outputs else None

    def forward(self, y: Tensor) -> Tensor:
        x = F.relu(self.norm1(y))
        if self.shortcut is not None:
            y = self.shortcut(x)
        x = self.conv2(F.relu(self.norm2(self.conv1(x))))
        return y + self.conv3(F.relu(self.norm3(x)))


class ResNet1001(Published):
    """16 channels, then three stages of 111 bottlenecks with 64, 128 and 256 channels."""

    smallest = 5  # strides round up: 5, 3, 2

    def __init__(self, classes: int, channels: int, dropout: float) -> None:
        super().__init__(classes, channels, 256)
        layers = Layers("torch", dropout)
        self.stem = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        self.blocks = nn.ModuleList()
        inputs = 16
        for stage, width in enumerate((16, 32, 64)):
            for n in range(111):
                self.blocks.append(Bottleneck(inputs, width, 2 if stage and n == 0 else 1, layers))
                inputs = 4 * width
        self.readout = Readout(layers.norm(inputs))

    def features(self, images: Tensor) -> Tensor:
        y = self.stem(images)
        for block in self.blocks:
            y = block(y)
        return self.readout(y)
