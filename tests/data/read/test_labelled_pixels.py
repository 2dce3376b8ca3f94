"""There must be as many labels as images; and images without colours are known, and made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from rkcnn.data.read.labelled_pixels import LabelledPixels, convert_channels, is_grey
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


def test_grey_is_told_by_the_pixels() -> None:
    grey = np.random.RandomState(0).randint(0, 256, (3, 5, 4, 1), np.uint8)
    pixels = np.repeat(grey, 3, 3)
    assert is_grey(grey)
    assert is_grey(pixels)
    pixels[2, 4, 3] = (9, 10, 11)
    assert is_grey(pixels), "as lossy decoders round"
    pixels[2, 4, 3] = (9, 10, 12)
    assert not is_grey(pixels)


def test_channels_are_converted_as_pillow_does() -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (2, 50, 40, 3), np.uint8)
    grey = convert_channels(pixels, 1)
    for image, expected in zip(grey, pixels, strict=True):
        assert (image[..., 0] == np.asarray(Image.fromarray(expected).convert("L"))).all()
    assert (convert_channels(grey, 3) == np.repeat(grey, 3, 3)).all()
    assert convert_channels(pixels, 3) is pixels
