"""Labelled images of one size: what every data set becomes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from rkcnn.data.options import OwnOptions
from rkcnn.data.read.labelled_pixels import hash_labels
from rkcnn.data.sets import SETS
from rkcnn.error import InputError

VALIDATION_SEED = 20240  # of the permutation that sets every validation split apart; changing it changes results


@dataclass(frozen=True, eq=False)
class Images:
    """Pixels with their labels, class names, and the mean and deviation by which batches are normalised.

    Raises InputError if these don't fit together. `pixels` may be memory-mapped.
    """

    name: str  # of the data set, as it was given to `load_images`
    part: str  # train, test, or a part of one: "validation 5000 of train"
    pixels: Tensor  # uint8 (N, C, H, W), the layout batches are made in
    labels: Tensor  # int64 (N,)
    classes: tuple[str, ...]
    mean: tuple[float, ...]  # of pixel / 255, one for each channel; 0 and 1 where the paper doesn't normalise
    std: tuple[float, ...]
    verified: bool  # whether the checksum of the content is the published one
    pixels_sha256: str  # as (N, H, W, C), of the complete training or test set, also where this is a part of it
    labels_sha256: str  # of the labels as uint8 (int64 above 256 classes)
    own: OwnOptions = OwnOptions()  # noqa: RUF009 (frozen): how a user's own images were read
    brightness: float | None = None  # mean of pixel / 255 where `mean` is another set's; of grey images alone

    def __post_init__(self) -> None:
        where = f"{self.name} ({self.part})"
        if self.pixels.dtype != torch.uint8 or self.pixels.ndim != 4 or 0 in self.pixels.shape:
            given = f"{self.pixels.dtype} {tuple(self.pixels.shape)}"
            raise InputError(f"{where}: pixels are {given}, and must be uint8 (N, C, H, W), none of them 0")
        count, channels = self.pixels.shape[0], self.pixels.shape[1]
        if self.labels.shape != (count,) or self.labels.dtype != torch.int64:
            given = f"{self.labels.dtype} {tuple(self.labels.shape)}"
            raise InputError(f"{where}: labels are {given}, and {count} images need int64 ({count},)")
        low, high = int(self.labels.min()), int(self.labels.max())
        if low < 0 or high >= len(self.classes):
            raise InputError(f"{where}: labels run from {low} to {high}, and must be 0 to {len(self.classes) - 1}")
        if len(self.mean) != channels or len(self.std) != channels or min(self.std) <= 0:
            raise InputError(f"{where}: {channels} channels need {channels} means and deviations above 0")

    def __len__(self) -> int:
        return self.pixels.shape[0]

    def __repr__(self) -> str:  # without the pixels, which would fill the screen
        _, channels, height, width = self.pixels.shape
        counts = f"{len(self):,} of {height} x {width} x {channels}, {len(self.classes)} classes"
        return f"<Images: {self.name} ({self.part}), {counts}, {self.origin}>"

    @property
    def origin(self) -> str:
        """What is known of the content: "verified" by the published checksum, "unverified", or "your own images"."""
        if self.verified:
            return "verified"
        return "unverified" if self.name in SETS else "your own images"

    def normalisation(self) -> tuple[Tensor, Tensor]:
        """Return (shift, scale), float32 (C, 1, 1), with (pixel - shift) * scale = (pixel / 255 - mean) / std.

        These two operations take 0.6 us for a 32 x 32 x 3 image, three with divisions 1.1; the values differ from those
        of torchvision's ToTensor and Normalize by 1e-6 at most.
        """
        mean, std = (torch.tensor(values, dtype=torch.float64).view(-1, 1, 1) for values in (self.mean, self.std))
        return (255 * mean).float(), (1 / (255 * std)).float()

    def split(self, validation: int) -> tuple[Images, Images]:
        """Return two `Images`: those left for training, and `validation` that are held out.

        Which they are depends on the number of images alone."""
        whole = isinstance(validation, Integral) and not isinstance(validation, bool)
        if not whole or not 0 < validation < len(self):
            raise InputError(
                f"{self.name}: {validation!r} of {len(self)} images can't be set apart for validation; "
                f"give 1 to {len(self) - 1}"
            )
        order = self._permutation()
        held_out, rest = order[:validation].sort().values, order[validation:].sort().values
        return (
            self._select(rest, f"{self.part} without validation {validation}"),
            self._select(held_out, f"validation {validation} of {self.part}"),
        )

    def choose(self, count: int) -> Images:
        """Return so many of the images, always the same ones, in their order."""
        whole = isinstance(count, Integral) and not isinstance(count, bool)
        if not whole or not 0 < count <= len(self):
            raise InputError(
                f"{self.name}: {count!r} of {len(self)} images can't be chosen; give a whole number from 1 to "
                f"{len(self)}"
            )
        return self._select(self._permutation()[:count].sort().values, f"{count} of {self.part}")

    def check(self) -> None:
        """Read every pixel and label again; InputError if their checksums have changed.

        The checksums are those of a complete set, so that a part that `split` or `choose` returned can't be checked.
        """
        if self.part not in ("train", "test"):
            raise InputError(
                f"{self.name} ({self.part}): is a part of a set, and checksums are known of complete sets alone; check "
                "the set that it was taken from"
            )
        pixels = hashlib.sha256()
        for block in self.pixels.split(4096):
            pixels.update(block.permute(0, 2, 3, 1).contiguous().numpy().data)
        labels = hash_labels(self.labels.numpy(), len(self.classes))
        for what, found, known in (
            ("pixels", pixels.hexdigest(), self.pixels_sha256),
            ("labels", labels, self.labels_sha256),
        ):
            if found != known:
                raise InputError(f"{self.name} ({self.part}): the {what} have changed since they were decoded")

    def _permutation(self) -> Tensor:
        # RandomState's stream is frozen by numpy's compatibility policy; torch.randperm's is not
        return torch.from_numpy(np.random.RandomState(VALIDATION_SEED).permutation(len(self)))

    def _select(self, indices: Tensor, part: str) -> Images:
        return replace(self, part=part, pixels=self.pixels[indices], labels=self.labels[indices])
