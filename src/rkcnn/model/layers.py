"""The layers all networks are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.solvers.batch_reducer import BatchReducer
from rkcnn.solvers.solver_step import widen


class BatchNorm(nn.BatchNorm2d):
    """Batch norm as the authors' code has it (eps 1e-3, momentum 0.01); held, it leaves its buffers alone.

    Given a `whole`, of which this process holds a share, the statistics of training are those of all of it.
    """

    def __init__(self, width: int, eps: float = 1e-3, momentum: float = 0.01) -> None:
        super().__init__(width, eps, momentum)
        self.held = False
        self.whole: BatchReducer | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.whole is not None and not x.is_meta:
            return self._normalise(x, self.whole)
        if self.training and self.held:
            return F.batch_norm(x, None, None, self.weight, self.bias, training=True, eps=self.eps)
        return super().forward(x)

    def _normalise(self, x: Tensor, whole: BatchReducer) -> Tensor:
        """By mean and variance of the whole: the mean of means, and the mean of (variances + their offsets squared)."""
        variance_here, mean_here = torch.var_mean(widen(x), (0, 2, 3), correction=0)
        mean, count = whole.mean(mean_here, x.numel() / x.shape[1])
        variance, _ = whole.mean(variance_here + (mean_here - mean).square(), x.numel() / x.shape[1])
        if not self.held:
            self._track(mean, variance * (count / (count - 1)))
        scale = self.weight * torch.rsqrt(variance + self.eps)
        shift = self.bias - mean * scale
        return torch.addcmul(_channels(shift), widen(x), _channels(scale)).to(x.dtype)

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        self.num_batches_tracked.add_(1)
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance, self.momentum)


def _channels(values: Tensor) -> Tensor:
    return values[:, None, None]  # (C, 1, 1)


def group_norm(width: int) -> nn.GroupNorm:
    """Group norm with the largest number of groups that divides the width and is at most 32.

    That is torchdiffeq's GroupNorm(min(32, width)) wherever that can be built, and k groups on the 2k-wide
    inputs of the paper's k = 20, 24, 26, 30, where it can't (SPEC 3.4).
    """
    return nn.GroupNorm(max(g for g in range(1, 33) if width % g == 0), width)


class Conv(nn.Conv2d):
    """A convolution that keeps its size (unless strided), with the recipe's dropout behind it.

    Frozen, its dropout mask is drawn once and used until released: a solver's f must not change under it.
    """

    def __init__(
        self, inputs: int, outputs: int, size: int, bias: bool = False, dropout: float = 0.0, stride: int = 1
    ) -> None:
        super().__init__(inputs, outputs, size, stride, padding=size // 2, bias=bias)
        self.dropout = dropout
        self.masks: dict[int, Tensor] | None = None

    def forward(self, x: Tensor, columns: slice | None = None) -> Tensor:
        """`columns` takes only those inputs of the weight: weights shared between wider and narrower layers."""
        weight = self.weight if columns is None else self.weight[:, columns]
        return self.drop(self._conv_forward(x, weight, self.bias))

    def drop(self, out: Tensor) -> Tensor:
        """Dropout, for this convolution's output or what is made of it."""
        if not self.training or self.dropout == 0:
            return out
        if self.masks is None:
            return F.dropout(out, self.dropout)
        if id(self) not in self.masks:
            self.masks[id(self)] = F.dropout(torch.ones_like(out), self.dropout)
        return out * self.masks[id(self)]


@dataclass(frozen=True)
class Layers:
    """Which norm and how much dropout: what the spec and the recipe decide for every layer of a block."""

    kind: str  # bn (the authors'), gn, or torch (batch norm with torch's defaults)
    dropout: float = 0.0

    def norm(self, width: int) -> nn.Module:
        makers: dict[str, Callable[[int], nn.Module]] = {
            "bn": BatchNorm,
            "gn": group_norm,
            "torch": partial(BatchNorm, eps=1e-5, momentum=0.1),
        }
        return makers[self.kind](width)

    def conv(self, inputs: int, outputs: int, size: int, bias: bool = False, stride: int = 1) -> Conv:
        return Conv(inputs, outputs, size, bias, self.dropout, stride)


class Frozen:
    """f as one fixed function for a whole solve, forward and backward.

    Every convolution keeps its dropout mask and, with `norms`, batch norm uses batch statistics but touches no buffers.
    """

    def __init__(self, f: nn.Module, norms: bool = True) -> None:
        self.f, self.norms = f, norms
        self.masks: dict[int, Tensor] = {}

    def __call__(self, t: float | Tensor, y: Tensor) -> Tensor:
        with holding(self.f, self.masks, self.norms):
            return self.f(t, y)


@contextmanager
def holding(f: nn.Module, masks: dict[int, Tensor], norms: bool) -> Iterator[None]:
    """Hold the dropout and, if asked, the batch norms of f, and release them whatever happens."""
    held = [module for module in f.modules() if norms and isinstance(module, BatchNorm)]
    convs = [module for module in f.modules() if isinstance(module, Conv)]
    try:
        for norm in held:
            norm.held = True
        for conv in convs:
            conv.masks = masks
        yield
    finally:
        for norm in held:
            norm.held = False
        for conv in convs:
            conv.masks = None
