"""Stage networks: each computes one stage of a learned Runge–Kutta step."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.layers import Layers, has_autocast


class Stage(nn.Module):
    """norm, ReLU, 1x1 to k channels, norm, ReLU, 3x3: 2c + ck + 2k + 9k^2 parameters on c input channels."""

    folded_norms: ClassVar = {"narrow": "norm2"}
    infer: Callable[[Stage, tuple[Tensor, ...]], Tensor] | None = None  # all before the 3x3 in a kernel of model/fast/

    def __init__(self, inputs: int, k: int, layers: Layers) -> None:
        super().__init__()
        self.norm1 = layers.norm(inputs)
        self.narrow = layers.conv(inputs, k, 1)
        self.norm2 = layers.norm(k)
        self.conv = layers.conv(k, k, 3)

    def forward(self, *states: Tensor) -> Tensor:
        if self.infer is not None and has_autocast(states[0]):
            return self.conv(self.infer(self, states))
        x = torch.cat(states, 1)
        x = self.narrow(F.relu(self.norm1(x)))
        return self.conv(F.relu(self.norm2(x)))


class SharedStage(nn.Module):
    """Stage i of s, whose two phases share their convolutions and have norms of their own (CliqueNet's block).

    Its weights read {y, x_j (j != i)}, each state by a block W_ij with a fan-in of its own; Phase I uses those of
    {y, x_1 .. x_{i-1}}, Phase II all of them, or all but y's. Without the 1x1 bottleneck the 3x3 convolution reads the
    states itself, as in the first CliqueNet. `y_width` is the number of y's channels, k unless given.
    """

    def __init__(
        self,
        i: int,
        s: int,
        k: int,
        layers: Layers,
        y: bool,
        y_width: int | None = None,
        bottleneck: bool = True,
    ) -> None:
        super().__init__()
        before = k if y_width is None else y_width  # channels of y
        blocks = (before, *[k] * (s - 1))
        width = sum(blocks)
        self.columns = {1: slice(0, before + i * k), 2: slice(0 if y else before, width)}
        self.bottleneck = bottleneck
        for phase, columns in self.columns.items():
            self.add_module(f"norm1_{phase}", layers.norm(columns.stop - columns.start))
        if bottleneck:
            self.narrow = layers.conv(width, k, 1, blocks=blocks)
            for phase in self.columns:
                self.add_module(f"norm2_{phase}", layers.norm(k))
        self.conv = layers.conv(k, k, 3) if bottleneck else layers.conv(width, k, 3, blocks=blocks)

    def forward(self, phase: int, *states: Tensor) -> Tensor:
        columns = self.columns[phase]
        x = F.relu(self.get_submodule(f"norm1_{phase}")(torch.cat(states, 1)))
        if not self.bottleneck:
            return self.conv(x, columns)
        x = self.narrow(x, columns)
        return self.conv(F.relu(self.get_submodule(f"norm2_{phase}")(x)))
