"""Corrupted copies of images, by kind and grade: noise, blur, lost contrast, shifts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from numbers import Integral

import torch
import torch.nn.functional as F
from torch import Tensor

from rkcnn.data.images import Images
from rkcnn.error import InputError

GRADES = (1, 2, 3, 4, 5)
NOISE = (0.04, 0.08, 0.12, 0.18, 0.26)  # standard deviation, as a share of the range from black to white
BLUR = (0.5, 0.75, 1.0, 1.5, 2.0)  # standard deviation of the Gaussian in pixels of an image of 32
CONTRAST = (0.75, 0.5, 0.4, 0.3, 0.15)  # share that is left, as in CIFAR-10-C (Hendrycks & Dietterich 2019)
SHIFT = (1, 2, 3, 4, 6)  # pixels of an image of 32, in one of eight directions; black comes in
SEED = 20242  # of the noise and the directions; changing it changes results
_BLOCK = 1000  # images that are corrupted together


def corrupt(images: Images, kind: str, grade: int) -> Images:
    """Return the images corrupted in one of `CORRUPTIONS` with a grade from 1 to 5, always in the same way.

    Blur and shifts grow with the size of the images.
    """
    if not isinstance(kind, str) or kind not in CORRUPTIONS or not isinstance(grade, Integral) or grade not in GRADES:
        raise InputError(
            f"{kind!r} of grade {grade!r} given; kinds are {', '.join(CORRUPTIONS)}, and grades {GRADES[0]} to "
            f"{GRADES[-1]}"
        )
    pixels = torch.empty_like(images.pixels, memory_format=torch.contiguous_format)
    generator = torch.Generator().manual_seed(SEED)
    for start in range(0, len(images), _BLOCK):
        block = slice(start, start + _BLOCK)
        changed = CORRUPTIONS[kind](images.pixels[block].float(), grade - 1, generator)
        pixels[block] = changed.round_().clamp_(0, 255).to(torch.uint8)
    return replace(images, part=f"{images.part}, {kind} {grade}", pixels=pixels)


def _add_noise(pixels: Tensor, grade: int, generator: torch.Generator) -> Tensor:
    return pixels + 255 * NOISE[grade] * torch.randn(pixels.shape, generator=generator)


def _blur(pixels: Tensor, grade: int, generator: torch.Generator) -> Tensor:
    """Convolve rows, then columns, with a Gaussian of radius 3 standard deviations; the edge is continued."""
    sigma = BLUR[grade] * min(pixels.shape[2:]) / 32
    radius = ceil(3 * sigma)
    kernel = torch.exp(-(torch.arange(-radius, radius + 1) ** 2) / (2 * sigma**2))
    kernel = kernel / kernel.sum()
    planes = pixels.flatten(0, 1).unsqueeze(1)
    padded = F.pad(planes, (radius,) * 4, mode="replicate")
    return F.conv2d(F.conv2d(padded, kernel.view(1, 1, 1, -1)), kernel.view(1, 1, -1, 1)).view(pixels.shape)


def _lower_contrast(pixels: Tensor, grade: int, generator: torch.Generator) -> Tensor:
    mean = pixels.mean((2, 3), keepdim=True)
    return mean + CONTRAST[grade] * (pixels - mean)


def _shift(pixels: Tensor, grade: int, generator: torch.Generator) -> Tensor:
    height, width = pixels.shape[2:]
    far = round(SHIFT[grade] * min(height, width) / 32) or 1
    directions = torch.tensor([(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j])
    chosen = torch.randint(len(directions), (len(pixels),), generator=generator)
    padded = F.pad(pixels, (far,) * 4)
    shifted = torch.empty_like(pixels)
    for number, (down, right) in enumerate((far * directions).tolist()):
        top, left = far - down, far - right
        shifted[chosen == number] = padded[chosen == number, :, top : top + height, left : left + width]
    return shifted


CORRUPTIONS: dict[str, Callable[[Tensor, int, torch.Generator], Tensor]] = {
    "noise": _add_noise,
    "blur": _blur,
    "contrast": _lower_contrast,
    "shift": _shift,
}
"""The kinds, each with a function of float32 pixels (N, C, H, W) from 0 to 255, the grade less 1, and a generator."""
