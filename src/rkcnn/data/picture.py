"""One picture of any size, mode and source as the pixels that a trained network takes.

Dark ink on light paper is recognised, and turned into light ink on black as the digits of MNIST are.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.read.folder import FORMATS, SUFFIXES, bound_decoding, fit_pixels, make_upright, open_image
from rkcnn.data.sets import DIGITS
from rkcnn.disk import open_file
from rkcnn.error import InputError

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


MOST_BYTES = 4 << 30  # of one file
MOST_STREAMED = 1 << 30  # bytes of a picture on standard input; one that is decoded takes up to 700 million unpacked
_CHUNK = 1 << 20  # bytes that are read from it at a time
_BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF", b"BM")  # of PNG, JPEG, WebP and BMP files
_DARK = 0.35  # the mean of training images below which their background is dark: 0.13 of MNIST, 0.29 of Fashion-MNIST


@dataclass(frozen=True)
class PictureFormat:
    """What a network takes: the size and channels of its images, and whether they are light on a dark background."""

    height: int
    width: int
    channels: int
    dark: bool = False  # dark ink on light paper is turned into light on dark
    digits: bool = False  # and a digit on paper is cropped and centred as in MNIST

    @staticmethod
    def of(
        size: tuple[int, int], mean: tuple[float, ...], classes: tuple[str, ...], brightness: float | None = None
    ) -> PictureFormat:
        """Return the format of a network by its description; a mean of 0 is that of MNIST, which isn't subtracted.

        `brightness` is the mean of the training images, where `mean` is that of another set.
        """
        dark = len(mean) == 1 and (mean[0] if brightness is None else brightness) < _DARK
        return PictureFormat(*size, len(mean), dark, dark and classes == DIGITS)


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture as a network takes it."""

    name: str
    pixels: NDArray[np.uint8]  # (height, width, channels)
    inverted: bool  # it was dark on light paper, and is now light on dark


def read_picture(path: Path, wanted: PictureFormat, invert: bool | None = None) -> Picture:
    """Read a PNG, JPEG, WebP or BMP file; InputError if it can't be read.

    `invert` says whether dark and light are exchanged; without it, whether that is needed is recognised.
    """
    with open_file(path) as file:
        return read_stream(file, str(path), wanted, invert)


def read_stream(file: BinaryIO, name: str, wanted: PictureFormat, invert: bool | None = None) -> Picture:
    """Read a picture from an open file that can seek; see `read_picture`."""
    with open_image(file, name, MOST_BYTES, FORMATS) as image:
        bound_decoding(image, name, file.tell(), max(wanted.height, wanted.width))
        return fit_picture(image, name, wanted, invert)


def fit_picture(image: Image, name: str, wanted: PictureFormat, invert: bool | None = None) -> Picture:
    """Return a Pillow image, which this may change, as a network takes it; see `read_picture`."""
    if wanted.channels not in (1, 3):
        raise InputError(
            f"{name}: the network takes images of {wanted.channels} channels, and a picture has 1 (grey) or 3 (colour)"
        )
    upright = make_upright(image)
    inverted = is_light_paper(upright) if invert is None and wanted.dark else bool(invert)
    if inverted and wanted.channels == 1:
        upright = find_ink(upright, centred=wanted.digits)
    pixels = fit_pixels(upright, wanted.height, wanted.width, wanted.channels)
    return Picture(name, 255 - pixels if inverted and wanted.channels == 3 else pixels, inverted)


def fit_array(pixels: NDArray[Any], name: str, wanted: PictureFormat, invert: bool | None = None) -> Picture:
    """Return a uint8 array (height, width), or with 1 or 3 channels last, as a network takes it; see `read_picture`."""
    from PIL import Image

    grey = pixels.ndim == 2 or pixels.shape[2] == 1
    image = Image.fromarray(np.ascontiguousarray(pixels.reshape(pixels.shape[:2]) if grey else pixels))
    return fit_picture(image, name, wanted, invert)


class Found(NamedTuple):
    """What there is under a path: pictures by their suffix, other files, and why some folders can't be read."""

    pictures: list[Path]
    others: list[Path]
    unreadable: dict[Path, str]


def find_pictures(path: Path) -> Found:
    """Return the file as a picture, or the files in a folder and its subfolders, sorted; InputError if it has none.

    Entries whose name begins with a dot are left out, as in training.
    """
    if not path.is_dir():
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder")
        return Found([path], [], {})
    found = Found([], [], {})

    def keep(error: OSError) -> None:
        found.unreadable[Path(error.filename)] = f"{error.filename}: can't be read ({error.strerror})"

    for folder, folders, names in os.walk(path, onerror=keep):
        folders[:] = [name for name in folders if name[0] != "."]
        for file in (Path(folder, name) for name in names if name[0] != "."):
            (found.pictures if file.suffix.lower() in SUFFIXES else found.others).append(file)
    if path in found.unreadable:
        raise InputError(f"{found.unreadable[path]}; name a folder that can")
    if not found.pictures and not found.unreadable:
        raise InputError(f"{path}: is a folder with no picture; put {', '.join(SUFFIXES)} files in")
    found.pictures.sort()
    return found


def read_bytes(content: bytes, name: str, wanted: PictureFormat, invert: bool | None = None) -> Picture:
    """Read a picture from the bytes of its file; see `read_picture`."""
    if not content:
        raise InputError(f"{name}: there are no bytes; give those of a PNG, JPEG, WebP or BMP file")
    return read_stream(io.BytesIO(content), name, wanted, invert)


def read_endless(file: BinaryIO | None, name: str) -> bytes:
    """Return the bytes of a picture's file from a stream that may never end, as standard input may.

    Of a stream that doesn't begin as a picture does, the beginning alone. InputError if there are more bytes than the
    largest picture has, or if nothing can be read.
    """
    content = bytearray()
    try:
        while file is not None and (chunk := file.read(_CHUNK)):
            content += chunk
            if not content.startswith(_BEGINNINGS):
                break
            if len(content) > MOST_STREAMED:
                raise InputError(f"{name}: holds more than {MOST_STREAMED:,} bytes, and no picture that is read does")
    except OSError as error:  # a folder, say
        raise InputError(f"{name}: can't be read ({error.strerror})") from None
    return bytes(content)
