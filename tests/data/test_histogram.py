"""The statistics are those of the pixels."""

from __future__ import annotations

import numpy as np
import pytest

from rkcnn.data.histogram import mean_and_deviation


def test_they_are_the_pixels_own() -> None:
    pixels = np.random.default_rng(0).integers(0, 200, 1000)
    found = mean_and_deviation(np.bincount(pixels, minlength=256))
    assert found == pytest.approx(((pixels / 255).mean(), (pixels / 255).std()), abs=1e-12)


def test_one_value_has_no_deviation() -> None:
    assert mean_and_deviation(np.bincount(np.full(7, 255), minlength=256)) == (1.0, 0.0)


def test_every_bit_is_as_in_earlier_records() -> None:
    """A run's normalisation depends on them. These were computed when the statistics stood in data/cache.py."""
    counts = np.arange(256) ** 2
    values = np.arange(256) / 255
    mean = float(counts @ values / counts.sum())
    assert mean_and_deviation(counts) == (mean, float((counts @ (values - mean) ** 2 / counts.sum()) ** 0.5))
