"""What a decoder returns: images and their labels as numpy arrays, not yet compared with any published set."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rkcnn.error import InputError

_GREY_SPREAD = 2  # of 255: lossy WebP rounds the channels of a grey image apart by 1, and scaling may add 1
_BLOCK = 1024  # images looked at or converted at once


@dataclass(frozen=True, eq=False)
class LabelledPixels:
    """The images and labels of one file, or of two that belong together.

    Raises InputError if there is no image, or if the number of labels isn't that of the images.
    """

    where: str  # the file, for messages
    pixels: NDArray[np.uint8]  # (N, H, W, C), possibly a view with other strides
    labels: NDArray[np.integer[Any]]  # (N,), as wide as the file has them
    coarse: NDArray[np.integer[Any]] | None = None  # CIFAR-100's 20 superclasses

    def __post_init__(self) -> None:
        if self.pixels.dtype != np.uint8 or self.pixels.ndim != 4 or 0 in self.pixels.shape:
            given = f"{self.pixels.dtype} {self.pixels.shape}"
            raise InputError(f"{self.where}: pixels are {given}, and must be uint8 (N, H, W, C), none of them 0")
        for labels in (self.labels, self.coarse):
            if labels is not None and labels.shape != (len(self.pixels),):
                raise InputError(
                    f"{self.where}: {len(self.pixels)} images but {labels.size} labels; the two must match"
                )


def is_grey(pixels: NDArray[np.uint8]) -> bool:
    """Return whether images (N, H, W, 1 or 3) have no colours: each pixel's channels are equal, up to rounding."""
    if pixels.shape[3] == 1:
        return True
    for start in range(0, len(pixels), _BLOCK):
        red, green, blue = np.moveaxis(pixels[start : start + _BLOCK], 3, 0)
        low, high = np.minimum(np.minimum(red, green), blue), np.maximum(np.maximum(red, green), blue)
        if (high - low).max() > _GREY_SPREAD:
            return False
    return True


def convert_channels(pixels: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    """Return images (N, H, W, 1 or 3) with 1 or 3 channels; colours become grey as Pillow makes them (ITU-R 601)."""
    if pixels.shape[3] == channels:
        return pixels
    if channels == 3:
        return np.broadcast_to(pixels, (*pixels.shape[:3], 3))  # a view, which takes no memory
    grey = np.empty((*pixels.shape[:3], 1), np.uint8)
    for start in range(0, len(pixels), _BLOCK):
        red, green, blue = np.moveaxis(pixels[start : start + _BLOCK], 3, 0).astype(np.uint32)
        grey[start : start + _BLOCK, ..., 0] = (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16
    return grey


def hash_labels(labels: NDArray[np.int64], classes: int) -> str:
    """Return the sha256 of labels as uint8, or as int64 where there are more than 256 classes."""
    return hashlib.sha256(labels.astype(np.uint8 if classes <= 256 else np.int64).data).hexdigest()
