"""The layers around the periods, which are the same in all compared networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.layers import Layers, may_round


class StemConv(nn.Conv2d):
    """A convolution of a preprocessor, which kernels of model/fast/ may compute."""

    fused: Callable[[nn.Conv2d, Tensor], Tensor] | None = None  # (convolution, images) -> result in those kernels
    evaluates_fused = False  # whether they are used in evaluation too, or in training alone
    takes_tf32 = False  # whether they are used without autocast too, and round float32 to tf32

    def forward(self, images: Tensor) -> Tensor:
        if self.fused is not None and self.fuses(images):
            return self.fused(self, images)
        return super().forward(images)

    def fuses(self, images: Tensor) -> bool:
        """Whether fused kernels could convolve them: where they may round, and if 31 bits count all numbers."""
        numbers = images.numel() // self.in_channels * max(self.in_channels, self.out_channels)
        used = self.training or self.evaluates_fused
        return used and may_round(images, self.takes_tf32) and numbers < 2**31


class ConvStem(StemConv):
    """3x3 to k channels, without a bias: the preprocessor of networks for small images."""

    def __init__(self, channels: int, k: int) -> None:
        super().__init__(channels, k, 3, padding=1, bias=False)


class OdeNetStem(nn.Module):
    """ODE-Net's preprocessor: 3x3 without padding, then twice norm, ReLU, 4x4 with stride 2; 32x32 -> 7x7."""

    folded_norms: ClassVar = {"conv1": "norm1", "conv2": "norm2"}

    def __init__(self, channels: int, k: int, layers: Layers) -> None:
        super().__init__()
        self.conv1 = StemConv(channels, k, 3)
        self.norm1 = layers.norm(k)
        self.conv2 = StemConv(k, k, 4, stride=2, padding=1)
        self.norm2 = layers.norm(k)
        self.conv3 = StemConv(k, k, 4, stride=2, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        y = self.conv1(images)
        y = self.conv2(F.relu(self.norm1(y)))
        return self.conv3(F.relu(self.norm2(y)))


class Attention(nn.Module):
    """Scales each channel by sigmoid(W2 relu(W1 mean)), with k // 2 hidden units."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.squeeze = nn.Linear(k, max(k // 2, 1))
        self.excite = nn.Linear(max(k // 2, 1), k)

    def forward(self, x: Tensor) -> Tensor:
        weights = F.relu(self.squeeze(x.mean((2, 3))))
        return x * self.excite(weights).sigmoid()[:, :, None, None]


class Transition(nn.Module):
    """norm, ReLU, 1x1 to the next period's channels, attention, 2x2 average pool.

    With `pools_first` the pool comes before the 1x1 in training, which is the same but for rounding, as the 1x1 is
    linear and the attention's factors are those of a whole channel; the 1x1 then has a quarter of the pixels. With
    `evaluates_fused` also in evaluation.
    """

    pools_first = evaluates_fused = False

    def __init__(self, inputs: int, outputs: int, layers: Layers, attention: bool) -> None:
        super().__init__()
        self.norm = layers.norm(inputs)
        self.conv = layers.conv(inputs, outputs, 1)
        self.attention = Attention(outputs) if attention else None

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(x))
        pools_first = self.pools_first and (self.training or self.evaluates_fused)
        pools_first = pools_first and x.shape[2] % 2 == 0 == x.shape[3] % 2
        x = self.conv(_pool(x) if pools_first else x)
        if self.attention is not None:
            x = self.attention(x)
        return x if pools_first else F.avg_pool2d(x, 2)


def _pool(x: Tensor) -> Tensor:
    """Return the 2x2 averages, written as a sum of four, which torch.compile joins with what comes before."""
    return x.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).mean((3, 5))


class Readout(nn.Module):
    """norm, ReLU, global average: what the classifier reads of one period; without a norm the average alone."""

    def __init__(self, norm: nn.Module | None) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        if self.norm is not None:
            x = F.relu(self.norm(x))
        return x.mean((2, 3))
