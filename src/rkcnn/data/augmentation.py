"""Random changes of the training images: crop, flip and cutout, applied to a batch at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from rkcnn.data import randomness
from rkcnn.error import InputError


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
            (randomness.TOP, 2 * self.padding + 1, 0),
            (randomness.LEFT, 2 * self.padding + 1, 0),
            (randomness.FLIP, 1 + self.flip, 0),
            (randomness.HOLE_TOP, height if self.cutout else 1, half),
            (randomness.HOLE_LEFT, width if self.cutout else 1, half),
        )
        choices = positions.new_zeros(len(positions), len(columns))
        for number, (stream, count, less) in enumerate(columns):
            if count > 1:
                choices[:, number] = randomness.random_integers(seed, epoch, stream, positions) % count
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
