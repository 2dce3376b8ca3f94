"""Random choices of training as a pure function, and what they change in images: crop, flip, CutMix and cutout.

A choice is a 64-bit hash of (seed, epoch, stream, position), the same on every device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from rkcnn.error import InputError

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


@dataclass(frozen=True)
class Augmentation:
    """Which changes are made, in this order: a random crop of the padded image, a flip, CutMix, a black square."""

    padding: int = 0  # black pixels on each side before an image of the same size is cropped
    flip: bool = False  # left to right, with probability 1/2
    cutout: int = 0  # side of the square in pixels; its centre is anywhere in the image, so that it may cross the edge
    cutmix: float = 0.0  # probability that a rectangle of an image comes from another image (Yun et al. 2019)

    def __post_init__(self) -> None:
        if self.padding < 0 or self.cutout < 0:
            raise InputError(f"padding {self.padding} and cutout {self.cutout} must be 0 pixels or more")
        if not isinstance(self.flip, bool):
            raise InputError(f"flip {self.flip!r} must be True or False")
        if not 0 <= self.cutmix <= 1:
            raise InputError(f"cutmix {self.cutmix} must be a probability, from 0 to 1")

    def choose(self, seed: int, epoch: int, positions: Tensor, height: int, width: int) -> Tensor:
        """Return the random choices for the images at these positions of the epoch, int64 (N, 5); with CutMix (N, 9).

        The columns are the top and left of the crop, whether to flip, the top and left of the square, and with CutMix
        the top, bottom, left and right of the rectangle, bottom and right not included. Each is a function of (seed,
        epoch, position).
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
        return (
            torch.cat([choices, self._choose_rectangles(seed, epoch, positions, (height, width))], 1)
            if self.cutmix
            else choices
        )

    def _choose_rectangles(self, seed: int, epoch: int, positions: Tensor, size: tuple[int, int]) -> Tensor:
        """Return the top, bottom, left and right (N, 4) of a rectangle in each image.

        Its area is a random share of the image's, its sides are in the image's proportion, its centre is any pixel, and
        what crosses the edge is cut off. It is empty with probability 1 - cutmix.
        """
        is_mixed = random_fractions(seed, epoch, IS_MIXED, positions) < self.cutmix
        side = random_fractions(seed, epoch, AREA, positions).sqrt() * is_mixed
        columns = []
        for length, stream in zip(size, (CENTRE_ROW, CENTRE_COLUMN), strict=True):
            extent = (side * length).long()
            first = random_integers(seed, epoch, stream, positions) % length - extent // 2
            columns += [first.clamp(0, length), (first + extent).clamp(0, length)]
        return torch.stack(columns, 1)

    def share_of_other(self, choices: Tensor, height: int, width: int) -> Tensor:
        """Return the share of each image's area that comes from another image, float32 (B,)."""
        top, bottom, left, right = choices[:, 5:].unbind(1)
        return ((bottom - top) * (right - left)).float() / (height * width)

    def apply(self, pixels: Tensor, choices: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        """Change and normalise a batch: uint8 (B, C, H, W) and its choices in, float32 (B, C, H, W) out.

        With CutMix there are 2 B images: B, and behind them the other image of each, which is cropped and flipped in
        the same way. `shift` and `scale` (C, 1, 1) are those of `Images.normalisation`. Shapes are static and no branch
        depends on a value, so torch.compile and CUDA graphs can include it.
        """
        top, left, flip = choices[:, :3].repeat(1 + bool(self.cutmix), 1).unbind(1)  # (B,) each
        if self.padding:
            pixels = _crop(pixels, self.padding, top, left)
        if self.flip:
            # a ^ (a ^ b) is b: the mirror image where `chosen` is 255; torch.where takes 5 times as long
            chosen = (flip * 255).to(torch.uint8).view(-1, 1, 1, 1)
            pixels = pixels.flip(3).bitwise_xor_(pixels).bitwise_and_(chosen).bitwise_xor_(pixels)
        if self.cutmix:
            pixels, others = pixels.chunk(2)
            pixels = torch.where(_rectangle(pixels, *choices[:, 5:].unbind(1)), others, pixels)
        if self.cutout:
            hole_top, hole_left = choices[:, 3:5].unbind(1)
            hole = _rectangle(pixels, hole_top, hole_top + self.cutout, hole_left, hole_left + self.cutout)
            pixels = pixels * ~hole
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


def _rectangle(pixels: Tensor, top: Tensor, bottom: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return whether each pixel is in its image's rectangle, bool (B, 1, H, W); bottom and right are not included."""
    rows, columns = (torch.arange(size, device=pixels.device) for size in pixels.shape[2:])
    in_rows = (rows >= top[:, None]) & (rows < bottom[:, None])  # (B, H)
    in_columns = (columns >= left[:, None]) & (columns < right[:, None])  # (B, W)
    return in_rows[:, None, :, None] & in_columns[:, None, None, :]
