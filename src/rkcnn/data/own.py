"""How a user's own images are read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OwnOptions:
    """Choices for `folder:PATH` and `npz:PATH`; published sets have none."""

    size: int | None = None
    """Side of the square that a folder's images are resized and cropped to (32 if not given)."""
    split: float | None = None
    """Share of the images set apart as the test set, where the folder or file has none of its own."""
    skip_bad: bool = False
    """Leave out images that can't be read instead of stopping at the first."""
    max_bytes: int = 4 << 30
    """The most bytes the decoded images may come to."""
