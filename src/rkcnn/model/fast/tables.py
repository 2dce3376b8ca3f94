"""Numbers on the device that kernels read: addresses and places, the same at every step. Imports no triton."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor


@cache
def table(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    """Return the numbers on the device; kept for good, since a CUDA graph reads them there at every replay."""
    return torch.tensor(numbers, dtype=torch.int32, device=device)


@cache
def address_table(rows: tuple[tuple[int, ...], ...], device: torch.device) -> Tensor:
    """Return rows of addresses and other numbers on the device, kept for good like those of `table`."""
    return torch.tensor(rows, dtype=torch.int64, device=device)


def cut(sizes: Sequence[int], block: int) -> list[tuple[int, int, int]]:
    """Cut tensors of these sizes into blocks: (tensor, first number, how many) of each."""
    return [(n, at, min(block, size - at)) for n, size in enumerate(sizes) for at in range(0, size, block)]
