"""CliqueNet (Yang et al. 2018)."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.frame import Readout, Transition
from rkcnn.model.layers import Layers
from rkcnn.model.network import Published
from rkcnn.model.stage import SharedStage


class CompressedReadout(nn.Module):
    """norm, ReLU, 1x1 to half the channels, then an ordinary readout."""

    folded_norms: ClassVar = {"compress": "pool.norm"}

    def __init__(self, width: int, layers: Layers) -> None:
        super().__init__()
        self.norm = layers.norm(width)
        self.compress = layers.conv(width, width // 2, 1)
        self.pool = Readout(layers.norm(width // 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.compress(F.relu(self.norm(x))))


class CliqueBlock(nn.Module):
    """y -> ({x}, {y, x}): Phase I densely, then every layer renewed from all the others, with the same weights."""

    def __init__(self, width: int, k: int, count: int, bottleneck: bool, layers: Layers) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            SharedStage(i, count, k, layers, y=False, y_width=width, bottleneck=bottleneck) for i in range(count)
        )

    def forward(self, y: Tensor) -> tuple[Tensor, Tensor]:
        x: list[Tensor] = []
        for stage in self.stages:
            x.append(stage(1, y, *x))
        for i, stage in enumerate(self.stages):
            x[i] = stage(2, *x[:i], *x[i + 1 :])
        return torch.cat(x, 1), torch.cat([y, *x], 1)


class CliqueNetOriginal(Published):
    """64 channels, three clique blocks of `count` layers, transitions that keep the width.

    `full` adds what the paper's second row has: bottlenecks, attention and compressed readouts.
    """

    def __init__(self, classes: int, channels: int, dropout: float, k: int, count: int, full: bool) -> None:
        layers = Layers("bn", dropout)
        grown = count * k
        inputs = (64, grown, grown)
        reads = [width + grown for width in inputs]
        super().__init__(classes, channels, sum(width // 2 if full else width for width in reads))
        self.stem = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        self.blocks = nn.ModuleList(CliqueBlock(width, k, count, full, layers) for width in inputs)
        self.transitions = nn.ModuleList(Transition(grown, grown, layers, attention=full) for _ in range(2))
        self.readouts = nn.ModuleList(
            CompressedReadout(width, layers) if full else Readout(layers.norm(width)) for width in reads
        )

    def features(self, images: Tensor) -> Tensor:
        y = self.stem(images)
        read = []
        for i, (block, readout) in enumerate(zip(self.blocks, self.readouts, strict=True)):
            onward, out = block(y)
            read.append(readout(out))
            if i < len(self.transitions):
                y = self.transitions[i](onward)
        return torch.cat(read, 1)
