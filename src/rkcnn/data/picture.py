"""One picture of any size, mode and source as the pixels that a trained network takes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.paper import find_ink, is_light_paper
from rkcnn.data.read.folder import FORMATS, SUFFIXES, bound_decoding, fit_pixels, make_upright, open_image
from rkcnn.disk import open_file
from rkcnn.error import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_BYTES = 4 << 30  # of one file
STDIN = "-"  # the name of standard input
_DARK = 0.35  # the mean of training images below which their background is dark: 0.13 of MNIST, 0.29 of Fashion-MNIST
DIGITS = tuple("0123456789")


@dataclass(frozen=True)
class PictureFormat:
    """What a network takes: the size and channels of its images, and whether they are light on a dark background."""

    height: int
    width: int
    channels: int
    dark: bool = False  # dark ink on light paper is turned into light on dark
    digits: bool = False  # and a digit on paper is cropped and centred as in MNIST

    @staticmethod
    def of(size: tuple[int, int], mean: tuple[float, ...], classes: tuple[str, ...]) -> PictureFormat:
        """Return the format of a network by its description; a mean of 0 is that of MNIST, which isn't subtracted."""
        dark = len(mean) == 1 and mean[0] < _DARK
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


def find_pictures(path: Path) -> list[Path]:
    """Return the file, or all pictures in a folder and its subfolders, sorted; InputError if there is none."""
    if not path.is_dir():
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder")
        return [path]
    found = sorted(_walk(path))
    if not found:
        raise InputError(f"{path}: is a folder with no picture; put {', '.join(SUFFIXES)} files in")
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.suffix.lower() in SUFFIXES and path.name[0] != "." and path.is_file():
            yield path


def read_bytes(content: bytes, name: str, wanted: PictureFormat, invert: bool | None = None) -> Picture:
    """Read a picture from the bytes of its file; see `read_picture`."""
    if not content:
        raise InputError(f"{name}: there are no bytes; give those of a PNG, JPEG, WebP or BMP file")
    return read_stream(io.BytesIO(content), name, wanted, invert)
