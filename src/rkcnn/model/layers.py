"""The layers that all networks are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.solvers.solver_step import Time


def has_autocast(x: Tensor) -> bool:
    """Whether operations on this tensor are rounded by autocast; never on the meta device, where costs are counted."""
    return not x.is_meta and torch.is_autocast_enabled(x.device.type)


def may_round(x: Tensor, to_tf32: bool) -> bool:
    """Whether products with this tensor may be rounded: by autocast, or from float32 to tf32 where that is allowed."""
    return has_autocast(x) or (to_tf32 and not x.is_meta and x.dtype == torch.float32)


def trains_fused(module: nn.Module, x: Tensor, to_tf32: bool) -> bool:
    """Whether fused kernels could take this module: in training, if they may round, where norms follow batches.

    They count the numbers of a tensor, which has up to 128 channels inside of them, with 31 bits.
    """
    norms = [each for each in module.modules() if isinstance(each, BatchNorm)]
    return (
        may_round(x, to_tf32)
        and x.numel() // x.shape[1] <= 2**24
        and all(norm.training and not norm.frozen and norm.momentum is not None for norm in norms)
    )


def group_norm(width: int) -> nn.GroupNorm:
    """Return group norm with the largest number of groups that divides the width and is at most 32.

    That is torchdiffeq's GroupNorm(min(32, width)) wherever that can be built, and k groups on the 2k-wide
    inputs of the paper's k = 20, 24, 26, 30, where it can't (docs/spec.md, 3.4).
    """
    return nn.GroupNorm(max(g for g in range(1, 33) if width % g == 0), width)


class Conv(nn.Conv2d):
    """A convolution that keeps the size of its input (unless strided), followed by the recipe's dropout.

    `blocks` says that the weight is several matrices side by side, each for so many input channels: each then starts
    with the fan-in of its own channels. While `masks` is set, a dropout mask is drawn once and used again.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int,
        bias: bool = False,
        dropout: float = 0.0,
        stride: int = 1,
        blocks: Sequence[int] = (),
    ) -> None:
        super().__init__(inputs, outputs, size, stride, padding=size // 2, bias=bias)
        self.dropout = dropout
        self.masks: dict[int, Tensor] | None = None
        self.blocks = tuple(blocks)
        self.scale_blocks()

    @torch.no_grad()
    def scale_blocks(self) -> None:
        """Scale weights that were just drawn with the fan-in of all inputs to that of their own block."""
        for block, width in zip(self.weight.split(self.blocks, 1) if self.blocks else (), self.blocks, strict=True):
            block.mul_((self.in_channels / width) ** 0.5)

    def forward(self, x: Tensor, columns: slice | None = None) -> Tensor:
        """Convolve; `columns` uses only those input channels of the weight, for layers that share it."""
        weight = self.weight if columns is None else self.weight[:, columns]
        return self.drop(self._conv_forward(x, weight, self.bias))

    def drop(self, out: Tensor) -> Tensor:
        """Apply dropout to this convolution's output, or to what was made of it."""
        if not self.training or self.dropout == 0:
            return out
        if self.masks is None:
            return F.dropout(out, self.dropout)
        if id(self) not in self.masks:
            self.masks[id(self)] = F.dropout(torch.ones_like(out), self.dropout)
        return out * self.masks[id(self)]


@dataclass(frozen=True)
class Layers:
    """Makes the layers of a block, with the norm that the network's name and the dropout that the recipe asks for."""

    kind: str  # bn (the authors'), gn, or torch (batch norm with torch's defaults)
    dropout: float = 0.0

    def norm(self, width: int) -> nn.Module:
        makers: dict[str, Callable[[int], nn.Module]] = {
            "bn": BatchNorm,
            "gn": group_norm,
            "torch": partial(BatchNorm, eps=1e-5, momentum=0.1),
        }
        return makers[self.kind](width)

    def conv(
        self, inputs: int, outputs: int, size: int, bias: bool = False, stride: int = 1, blocks: Sequence[int] = ()
    ) -> Conv:
        return Conv(inputs, outputs, size, bias, self.dropout, stride, blocks)


class Frozen:
    """f as one fixed function for a whole solve, forward and backward.

    Each convolution keeps its dropout mask; with `norms`, batch norms use the batch's statistics and don't update
    their buffers.
    """

    def __init__(self, f: nn.Module, norms: bool = True) -> None:
        self.f, self.norms = f, norms
        self.masks: dict[int, Tensor] = {}

    def __call__(self, t: Time, y: Tensor) -> Tensor:
        convs = [module for module in self.f.modules() if isinstance(module, Conv)]
        with frozen_norms(self.f) if self.norms else nullcontext():
            try:
                for conv in convs:
                    conv.masks = self.masks
                return self.f(t, y)
            finally:
                for conv in convs:
                    conv.masks = None


@contextmanager
def frozen_norms(network: nn.Module) -> Iterator[None]:
    """A context in which no batch norm of the network updates its running statistics."""
    norms = [module for module in network.modules() if isinstance(module, BatchNorm) and not module.frozen]
    try:
        for norm in norms:
            norm.frozen = True
        yield
    finally:
        for norm in norms:
            norm.frozen = False
