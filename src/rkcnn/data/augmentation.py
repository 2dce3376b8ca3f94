"""Random choices of training as a pure function, and what they change in images: crop, flip and cutout.

A choice is a 64-bit hash of (seed, epoch, stream, position), the same on every device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from rkcnn.error import InputError

ORDER, TOP, LEFT, FLIP, HOLE_TOP, HOLE_LEFT = range(6)  # the streams, one for each thing that is chosen at random

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


@dataclass(frozen=True)
class Augmentation:
    """Which changes are made, in this order: a random crop of the padded image, a flip, a black square."""

    padding: int = 0  # black pixels on each side before an image of the same size is cropped
    flip: bool = False  # left to right, with probability 1/2
    cutout: int = 0  # side of the square in pixels; its centre is anywhere in the image, so that it may cross the edge

    def __post_init__(self) -> None:
        if self.padding < 0 or self.cutout < 0:
            raise InputError(f"padding {self.padding} and cutout {self.cutout} must be 0 pixels or more")
        if not isinstance(self.flip, bool):
            raise InputError(f"flip {self.flip!r} must be True or False")

    def choose(self, seed: int, epoch: int, positions: Tensor, height: int, width: int) -> Tensor:
        """Return the random choices for the images at these positions of the epoch, int64 (N, 5).

        The columns are the top and left of the crop, whether to flip, and the top and left of the square. Each is a
        function of (seed, epoch, position).
        """
        half = self.cutout // 2
        columns = (
            (TOP, 2 * self.padding + 1, 0),
            (LEFT, 2 * self.padding + 1, 0),
            (FLIP, 1 + self.flip, 0),
            (HOLE_TOP, height if self.cutout else 1, half),
            (HOLE_LEFT, width if self.cutout else 1, half),
        )
        choices = positions.new_zeros(len(positions), len(columns))
        for number, (stream, count, less) in enumerate(columns):
            if count > 1:
                choices[:, number] = random_integers(seed, epoch, stream, positions) % count
            choices[:, number] -= less
        return choices

    def apply(self, pixels: Tensor, choices: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        """Change and normalise a batch: uint8 (B, C, H, W) and its choices (B, 5) in, float32 (B, C, H, W) out.

        `shift` and `scale` (C, 1, 1) are those of `Images.normalisation`. Shapes are static and no branch depends on a
        value, so torch.compile and CUDA graphs can include it.
        """
        top, left, flip, hole_top, hole_left = choices.unbind(1)  # (B,) each
        if self.padding:
            pixels = _crop(pixels, self.padding, top, left)
        if self.flip:
            # a ^ (a ^ b) is b: the mirror image where `chosen` is 255; torch.where takes 5 times as long
            chosen = (flip * 255).to(torch.uint8).view(-1, 1, 1, 1)
            pixels = pixels.flip(3).bitwise_xor_(pixels).bitwise_and_(chosen).bitwise_xor_(pixels)
        if self.cutout:
            rows, columns = (torch.arange(size, device=pixels.device) for size in pixels.shape[2:])
            in_rows = _within(rows, hole_top, self.cutout)  # (B, H)
            in_columns = _within(columns, hole_left, self.cutout)  # (B, W)
            pixels = pixels * ~(in_rows[:, None, :, None] & in_columns[:, None, None, :])
        return pixels.float().sub_(shift).mul_(scale)


NONE = Augmentation()


def _crop(pixels: Tensor, padding: int, top: Tensor, left: Tensor) -> Tensor:
    """Return a window of the original size from each padded image, at its own `top` and `left` (B,).

    The pixels of a row are contiguous in memory, so one index_select of overlapping stretches copies all rows: 0.3 us
    an image on a CPU core. An index for each pixel takes 3.5 us, unfold in two dimensions 8 us.
    """
    count, channels, height, width = pixels.shape
    if not count:  # a rank's share of a short last batch may be empty
        return pixels
    tall, wide = height + 2 * padding, width + 2 * padding
    padded = pad(pixels, (padding,) * 4)  # black: 0 before normalisation
    rows = (top * wide + left)[:, None] + torch.arange(0, height * wide, wide, device=pixels.device)  # (B, H)
    planes = torch.arange(0, padded.numel(), tall * wide, device=pixels.device)
    starts = planes.view(count, channels, 1) + rows[:, None, :]  # (B, C, H)
    return padded.reshape(-1).unfold(0, width, 1).index_select(0, starts.view(-1)).view(pixels.shape)


def _within(positions: Tensor, start: Tensor, length: int) -> Tensor:
    return (positions >= start[:, None]) & (positions < start[:, None] + length)
