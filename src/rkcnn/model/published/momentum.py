"""Momentum ResNet-101 (Sander et al. 2021), as in the public repository: ordinary width, velocity from zero."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.frame import Readout
from rkcnn.model.layers import Layers
from rkcnn.model.network import Published
from rkcnn.model.steps.momentum import MomentumStep


def bottleneck(inputs: int, width: int, stride: int, layers: Layers) -> nn.Sequential:
    """Return 1x1, 3x3 with the stride (v1.5), 1x1 to 4 times the width, each followed by a norm."""
    return nn.Sequential(
        layers.conv(inputs, width, 1),
        layers.norm(width),
        nn.ReLU(),
        layers.conv(width, width, 3, stride=stride),
        layers.norm(width),
        nn.ReLU(),
        layers.conv(width, 4 * width, 1),
        layers.norm(4 * width),
    )


class MomentumStage(nn.Module):
    """An ordinary residual block that changes the shape, then momentum steps; v starts at zero."""

    part_titles: ClassVar = {"entry": "residual block", "projection": "its shortcut"}

    def __init__(self, inputs: int, width: int, count: int, stride: int, layers: Layers) -> None:
        super().__init__()
        self.entry = bottleneck(inputs, width, stride, layers)
        self.projection = nn.Sequential(layers.conv(inputs, 4 * width, 1, stride=stride), layers.norm(4 * width))
        self.steps = nn.ModuleList(MomentumStep(bottleneck(4 * width, width, 1, layers)) for _ in range(count - 1))

    def forward(self, y: Tensor) -> Tensor:
        y = F.relu(self.projection(y) + self.entry(y))
        v = torch.zeros_like(y)
        for step in self.steps:
            y, v = step(y, v)
        return y


class MomentumResNet101(Published):
    """A 3x3 stem with norm and ReLU, no pooling, and stages of 3, 4, 23 and 3 blocks."""

    smallest = 9  # strides round up: 9, 5, 3, 2

    def __init__(self, classes: int, channels: int, dropout: float) -> None:
        super().__init__(classes, channels, 2048)
        layers = Layers("torch", dropout)
        self.stem = nn.Sequential(nn.Conv2d(channels, 64, 3, padding=1, bias=False), layers.norm(64), nn.ReLU())
        self.stages = nn.ModuleList(
            MomentumStage(inputs, width, count, stride, layers)
            for inputs, width, count, stride in (
                (64, 64, 3, 1),
                (256, 128, 4, 2),
                (512, 256, 23, 2),
                (1024, 512, 3, 2),
            )
        )
        self.readout = Readout(None)

    def features(self, images: Tensor) -> Tensor:
        y = self.stem(images)
        for stage in self.stages:
            y = stage(y)
        return self.readout(y)
