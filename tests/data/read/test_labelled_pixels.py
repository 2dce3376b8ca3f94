"""There must be as many labels as images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.error import InputError

PIXELS = np.zeros((3, 2, 2, 1), np.uint8)


@pytest.mark.parametrize(
    ("pixels", "labels", "coarse"),
    [
        (PIXELS, np.zeros(2, int), None),
        (PIXELS, np.zeros(3, int), np.zeros(2, int)),
        (PIXELS[:0], np.zeros(0, int), None),
        (PIXELS[0], np.zeros(3, int), None),
        (PIXELS.astype(float), np.zeros(3, int), None),
    ],
)
def test_refuses(pixels: Any, labels: Any, coarse: Any) -> None:
    with pytest.raises(InputError, match="here: "):
        LabelledPixels("here", pixels, labels, coarse)
