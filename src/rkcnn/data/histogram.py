"""The mean and standard deviation of pixels, from how often each of their 256 values occurs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_VALUES = np.arange(256) / 255


def mean_and_deviation(counts: NDArray[np.int64]) -> tuple[float, float]:
    """Return the mean and the standard deviation of pixel / 255; `counts` (256,) says how often each value occurs.

    No copy of the pixels as floating-point numbers is made for it. A run's normalisation depends on every bit.
    """
    mean = float(counts @ _VALUES / counts.sum())
    return mean, float((counts @ (_VALUES - mean) ** 2 / counts.sum()) ** 0.5)
