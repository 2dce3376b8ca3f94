"""Dark ink on light paper: recognising it, and turning it into light ink on black as the digits of MNIST are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

Grey = NDArray[np.float64]  # (height, width), from 0 to 255

_LARGEST = 256  # pixels of the longer side, to which a picture is scaled before it is looked at
_LIGHT = 110  # of 255, the least grey of paper, also in a shaded photograph
_CONTRAST = 30  # of 255, by how much ink is darker than paper
_DARKEST = 0.998  # the quantile of darkness that is taken for the ink's: a small digit is 0.5 % of a picture
_INK = 0.35  # of the way from paper to ink, from where on a pixel is ink
_DIGIT = 20 / 28  # the share of MNIST's square that the longer side of a digit takes
_MIDDLE = 14.5 / 28  # where the centre of mass of MNIST's digits is, measured


def is_light_paper(image: Image) -> bool:
    """Return whether the border of a picture is light and something darker is inside, as ink on paper is."""
    grey = _shrink(image)
    darkness = _paper(grey) - grey
    return float(np.median(grey[_border(grey)])) >= _LIGHT and float(np.quantile(darkness, _DARKEST)) >= _CONTRAST


def find_ink(image: Image, centred: bool) -> Image:
    """Return the picture in grey, light ink on black: the paper becomes 0 and the darkest ink 255.

    With `centred` it is a square with the ink as MNIST has its digits: the longer side takes 20 of 28 pixels, and the
    centre of mass is where theirs is.
    """
    from PIL import Image

    grey = _shrink(image)
    darkness = _paper(grey) - grey
    depth = max(float(np.quantile(darkness, _DARKEST)), 1.0)
    grain = min(2 * float(np.quantile(np.abs(darkness[_border(grey)]), 0.9)), depth / 2)  # of the paper, not ink
    ink = np.clip((darkness - grain) / (depth - grain), 0, 1)
    if centred and (ink > _INK).any():
        ink = _centre(ink)
    return Image.fromarray(np.rint(255 * ink).astype(np.uint8))


def _centre(ink: Grey) -> Grey:
    """Return the ink alone, in a square, with its centre of mass as close to MNIST's as the square allows."""
    rows, columns = (np.flatnonzero((ink > _INK).any(axis)) for axis in (1, 0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    side = round(max(ink.shape) / _DIGIT)
    place = []
    for axis, length in enumerate(ink.shape):
        middle = float((ink.sum(1 - axis) * (np.arange(length) + 0.5)).sum() / ink.sum())
        start = min(max(round(_MIDDLE * side - middle), 0), side - length)
        place.append(slice(start, start + length))
    square = np.zeros((side, side))
    square[tuple(place)] = ink
    return square


def _paper(grey: Grey) -> Grey:
    """Return the grey of the paper everywhere: a quadratic surface through the border, where ink is left out."""
    y, x = (axis / max(length - 1, 1) for axis, length in zip(np.indices(grey.shape), grey.shape, strict=True))
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], -1)
    fitted = _border(grey)
    for _ in range(2):
        surface = terms @ np.linalg.lstsq(terms[fitted], grey[fitted], rcond=None)[0]
        fitted = _border(grey) & (surface - grey < _CONTRAST / 2)
        if fitted.sum() < 2 * terms.shape[-1]:
            break
    return surface


def _shrink(image: Image) -> Grey:
    grey = image.convert("L")
    if max(grey.size) > _LARGEST:
        grey.thumbnail((_LARGEST, _LARGEST))
    return np.asarray(grey, np.float64)


def _border(grey: Grey) -> NDArray[np.bool_]:
    """Return which pixels are in a frame of one sixteenth of the picture's sides."""
    height, width = (max(1, side // 16) for side in grey.shape)
    frame = np.ones(grey.shape, bool)
    frame[height:-height, width:-width] = False
    return frame
