"""A few real digits as an own set, for tests that train."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rkcnn.data.load import load_data_set


def write_digits(path: Path, train: int = 400, test: int = 100) -> str:
    """The name of a set with the first of the bundled digits."""
    parts = {}
    for images, name, count in zip(load_data_set("mnist-mini"), ("train", "test"), (train, test), strict=True):
        parts[f"x_{name}"] = images.pixels[:count, 0].numpy()
        parts[f"y_{name}"] = images.labels[:count].numpy()
    np.savez(path, **parts)  # type: ignore[arg-type]
    return f"npz:{path}"
