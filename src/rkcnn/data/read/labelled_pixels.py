"""What a decoder returns: images and their labels as numpy arrays, not yet compared with any published set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rkcnn.error import InputError


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
