"""Which of a user's own images are test images, where a folder, a file or arrays have no test set of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.options import BELOW_SHARE, BY_CONTENT, BY_CONTENT_ALONE, OwnOptions, SplitOptions
from rkcnn.disk import open_file
from rkcnn.error import InputError

Labels = NDArray[np.integer[Any]]
Places = NDArray[np.float64]
"""A number from 0 to 1 for each image that follows from its content alone; one below the share is a test image."""


def divide(
    labels: Labels, classes: Sequence[str], own: OwnOptions, where: str, find_places: Callable[[], Places]
) -> tuple[dict[str, NDArray[np.bool_]], str]:
    """Return which images are of train and which of test by the share in `own`, and the rule for a record."""
    places, share = find_places(), check_split(own.split, where)
    below = places < share
    if find_rule(own) == BELOW_SHARE:
        if not below.any():
            raise InputError(f"{where}: none of its images is below the share {share} that becomes test images")
        return {name: chosen for name, chosen in (("train", ~below), ("test", below)) if chosen.any()}, BELOW_SHARE
    in_test = choose_share(labels, classes, share, where, places)
    return {"train": ~in_test, "test": in_test}, BY_CONTENT_ALONE if in_test[below].all() else BY_CONTENT


def find_rule(own: OwnOptions) -> str:
    """Return the rule by which test images are to be chosen: BY_CONTENT unless BELOW_SHARE is asked for."""
    return BELOW_SHARE if isinstance(own, SplitOptions) and own.split_rule == BELOW_SHARE else BY_CONTENT


def choose_share(
    labels: Labels, classes: Sequence[str], share: float | None, where: str, places: Places
) -> NDArray[np.bool_]:
    """Return which images (N,) are the test set: those whose place is below the share.

    So an image that is added or removed moves no other image, and identical images are on one side. Every class has an
    image in both sets: if all are on one side, the one nearest to the other side moves there.

    Raises InputError if a class has one image alone, or if no share is given.
    """
    share = check_split(share, where)
    check_classes(labels, classes, where)
    in_test = places < share
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        chosen, at = in_test[members], places[members]
        if chosen.all() or not chosen.any():
            nearest = members[at == (at.max() if chosen.all() else at.min())]
            in_test[nearest if len(nearest) < len(members) else nearest[:1]] ^= True
    return in_test


def check_classes(labels: Labels, classes: Sequence[str], where: str) -> None:
    """Raise InputError if a class has one image alone."""
    for label in np.flatnonzero(np.bincount(labels) == 1).tolist():
        raise InputError(
            f"{where}: class {classes[label]} has one image, and a split needs two or more, to train on and to test "
            "with; add images of that class or remove it"
        )


def check_split(share: float | None, where: str) -> float:
    """Return the share of images that is set apart as a test set; InputError if none is given, or one that can't be."""
    if share is None:
        raise InputError(f"{where}: has no test set of its own; state the share to set apart, say `split=0.2`")
    if not is_share(share):
        raise InputError(f"`split={share!r}` must be a share between 0 and 1, say `split=0.2`")
    return share


def is_share(value: object) -> bool:
    """Return whether a value is a number between 0 and 1."""
    return isinstance(value, Real) and 0 < float(value) < 1


def place_images(pixels: NDArray[np.uint8]) -> Places:
    """Return the places of images (N, H, W, C) by their pixels."""
    return np.array([_place(hashlib.sha256(np.ascontiguousarray(image).data)) for image in pixels])


def place_files(files: Sequence[Path], limit: int) -> Places:
    """Return the places of files by their bytes, so that the size that images are scaled to doesn't change them.

    A file that can't be read, or has more than `limit` bytes, is at 1; reading its image will say so.
    """
    places = np.ones(len(files))
    for index, path in enumerate(files):
        try:
            if path.stat().st_size <= limit:
                with open_file(path) as file:
                    places[index] = _place(hashlib.file_digest(file, "sha256"))
        except (InputError, OSError):
            continue
    return places


def _place(digest: Any) -> float:
    return int.from_bytes(digest.digest()[:6], "big") / (1 << 48)
