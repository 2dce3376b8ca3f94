"""What may happen to a picture before it is trained on, and the one function that does it to a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from rkcnn.data import randomness
from rkcnn.error import InputError


@dataclass(frozen=True)
class Augmentation:
    """Random crop after padding with black, then a flip left to right, each with probability 1/2, then a hole."""

    padding: int = 0  # pixels on each side
    flip: bool = False
    cutout: int = 0  # side of a black square; its centre is anywhere in the picture, so it may hang over the edge

    def __post_init__(self) -> None:
        if self.padding < 0 or self.cutout < 0:
            raise InputError(f"padding {self.padding} and cutout {self.cutout} must be 0 pixels or more")
        if not isinstance(self.flip, bool):
            raise InputError(f"flip {self.flip!r} must be True or False")

    def draw(self, seed: int, epoch: int, positions: Tensor, height: int, width: int) -> Tensor:
        """int64 (N, 5): crop top and left, flip, hole top and left; functions of (seed, epoch, position)."""
        half = self.cutout // 2
        columns = (
            (randomness.TOP, 2 * self.padding + 1, 0),
            (randomness.LEFT, 2 * self.padding + 1, 0),
            (randomness.FLIP, 1 + self.flip, 0),
            (randomness.HOLE_TOP, height if self.cutout else 1, half),
            (randomness.HOLE_LEFT, width if self.cutout else 1, half),
        )
        drawn = positions.new_zeros(len(positions), len(columns))
        for number, (stream, choices, less) in enumerate(columns):
            if choices > 1:
                drawn[:, number] = randomness.draw(seed, epoch, stream, positions) % choices
            drawn[:, number] -= less
        return drawn

    def apply(self, pixels: Tensor, drawn: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        """float32 (B, C, H, W), normalised, of uint8 (B, C, H, W) and the (B, 5) drawn for them.

        `shift` and `scale` (C, 1, 1) are those of `Images.normalisation`. Static shapes and no branch on a
        value: torch.compile and CUDA graphs take it in as it is.
        """
        top, left, flip, hole_top, hole_left = drawn.unbind(1)  # (B,) each
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
    """Each picture's own window of its size, out of the pictures with a black border.

    Every row of a window is one stretch of memory, so one index_select of overlapping stretches fetches all:
    0.3 us a picture on a CPU core; an index for each pixel takes 3.5 us, unfold in two dimensions 8 us.
    """
    count, channels, height, width = pixels.shape
    if not count:  # a rank's share of a short last batch
        return pixels
    tall, wide = height + 2 * padding, width + 2 * padding
    padded = pad(pixels, (padding,) * 4)  # black: 0 before normalisation
    rows = (top * wide + left)[:, None] + torch.arange(0, height * wide, wide, device=pixels.device)  # (B, H)
    planes = torch.arange(0, padded.numel(), tall * wide, device=pixels.device)
    starts = planes.view(count, channels, 1) + rows[:, None, :]  # (B, C, H)
    return padded.reshape(-1).unfold(0, width, 1).index_select(0, starts.view(-1)).view(pixels.shape)


def _within(places: Tensor, start: Tensor, length: int) -> Tensor:
    return (places >= start[:, None]) & (places < start[:, None] + length)
