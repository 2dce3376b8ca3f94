"""Random numbers as a pure function: a 64-bit hash of (seed, epoch, stream, position), the same on every device."""

from __future__ import annotations

import torch
from torch import Tensor

# the streams, one for each thing that is chosen at random
ORDER, TOP, LEFT, FLIP, HOLE_TOP, HOLE_LEFT, PARTNER, IS_MIXED, AREA, CENTRE_ROW, CENTRE_COLUMN = range(11)

_GOLDEN = (
    -0x61C8864680B583EB
)  # 2^64 / golden ratio as int64; like the two factors, from splitmix64 (Steele et al. 2014)
_MIX1 = -0x40A7B892E31B1A47
_MIX2 = -0x6B2FB644ECCEEE15


def random_integers(seed: int, epoch: int, stream: int, positions: Tensor) -> Tensor:
    """Return an int64 from 0 to 2^63 - 1 for each position (N,), on the device of `positions`."""
    key = torch.tensor([seed, epoch, stream], dtype=torch.int64)
    state = torch.zeros((), dtype=torch.int64)
    for word in key:
        state = _mix(state + word + _GOLDEN)
    return _mix(positions * _GOLDEN + state.to(positions.device)) & 0x7FFF_FFFF_FFFF_FFFF


def random_fractions(seed: int, epoch: int, stream: int, positions: Tensor) -> Tensor:
    """Return a float64 from 0 to 1, without 1, for each position (N,): 53 bits of its random integer."""
    return (random_integers(seed, epoch, stream, positions) >> 10).double() / 2**53


def permutation(seed: int, epoch: int, count: int, device: torch.device) -> Tensor:
    """Return the order of an epoch: which of `count` images is at each position."""
    keys = random_integers(seed, epoch, ORDER, torch.arange(count, device=device))
    return torch.argsort(keys, stable=True)


def _mix(z: Tensor) -> Tensor:
    z = (z ^ _shift(z, 30)) * _MIX1
    z = (z ^ _shift(z, 27)) * _MIX2
    return z ^ _shift(z, 31)


def _shift(z: Tensor, bits: int) -> Tensor:
    return (z >> bits) & ((1 << (64 - bits)) - 1)  # torch's >> keeps the sign, splitmix64's doesn't
