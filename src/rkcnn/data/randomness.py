"""Randomness as a function: a 64-bit hash of (seed, epoch, stream, position), the same on every device."""

from __future__ import annotations

import torch
from torch import Tensor

ORDER, TOP, LEFT, FLIP, HOLE_TOP, HOLE_LEFT = range(6)  # one stream of numbers for each thing drawn

_GOLDEN = -0x61C8864680B583EB  # 2^64 / golden ratio, as int64; with the two factors: Steele et al. 2014, splitmix64
_MIX1 = -0x40A7B892E31B1A47
_MIX2 = -0x6B2FB644ECCEEE15


def draw(seed: int, epoch: int, stream: int, positions: Tensor) -> Tensor:
    """int64 (N,) of 0 to 2^63 - 1, one for each position; a function of its arguments alone."""
    key = torch.tensor([seed, epoch, stream], dtype=torch.int64)
    state = torch.zeros((), dtype=torch.int64)
    for word in key:
        state = _mix(state + word + _GOLDEN)
    return _mix(positions * _GOLDEN + state.to(positions.device)) & 0x7FFF_FFFF_FFFF_FFFF


def order(seed: int, epoch: int, count: int, device: torch.device) -> Tensor:
    """A permutation of range(count): position in the epoch -> image; a function of (seed, epoch)."""
    keys = draw(seed, epoch, ORDER, torch.arange(count, device=device))
    return torch.argsort(keys, stable=True)


def _mix(z: Tensor) -> Tensor:
    z = (z ^ _shift(z, 30)) * _MIX1
    z = (z ^ _shift(z, 27)) * _MIX2
    return z ^ _shift(z, 31)


def _shift(z: Tensor, bits: int) -> Tensor:
    return (z >> bits) & ((1 << (64 - bits)) - 1)  # torch's >> keeps the sign; splitmix64's does not
