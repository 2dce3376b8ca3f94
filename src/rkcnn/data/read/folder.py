"""A folder of images, a subfolder a class, through Pillow: any size and mode in, squares of one size out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.files import open_file
from rkcnn.data.read.part import Part
from rkcnn.data.read.picture import open_picture, shrink
from rkcnn.error import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
FORMATS = ("PNG", "JPEG", "WEBP")
_GREY = ("1", "L", "LA", "La", "I", "F", "I;16", "I;16L", "I;16B", "I;16N")
_BLOCK = 16 << 20  # bytes of decoded images before they are handed on
_STRIP = 64  # rows of 16 bits made 8 at a time


@dataclass(frozen=True)
class Found:
    """The images of one folder of classes, none of them decoded yet."""

    classes: tuple[str, ...]
    files: tuple[tuple[Path, int], ...]  # with its label


def find_images(folder: Path) -> Found:
    """Every image under CLASS/ by name; an empty class is refused, other files and hidden ones left alone."""
    classes = tuple(path.name for path in _listed(folder, Path.is_dir))
    if not classes:
        raise InputError(f"{folder}: has no subfolders, and needs one for each class")
    files: list[tuple[Path, int]] = []
    for label, name in enumerate(classes):
        here = _listed(folder / name, lambda path: path.suffix.lower() in SUFFIXES and path.is_file())
        if not here:
            raise InputError(
                f"{folder / name}: is a class with no image; put {', '.join(SUFFIXES)} files in or remove the folder"
            )
        files += [(path, label) for path in here]
    return Found(classes, tuple(files))


def _listed(folder: Path, wanted: Callable[[Path], bool]) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.name[0] != "." and wanted(path))
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: can't be read ({error.strerror}); allow reading it or move it away"
        ) from None


def grey(files: tuple[tuple[Path, int], ...], limit: int, bad: Callable[[Path, InputError], None]) -> bool:
    """Whether every readable image is grey, by their headers alone."""
    for path, _ in files:
        try:
            with open_file(path) as file, open_picture(file, str(path), limit, FORMATS) as picture:
                if picture.mode not in _GREY:
                    return False
        except InputError as error:
            bad(path, error)
    return True


def read_folder(
    files: tuple[tuple[Path, int], ...],
    size: int,
    channels: int,
    limit: int,
    bad: Callable[[Path, InputError], None],
) -> Iterator[Part]:
    """The images as (N, size, size, channels), some at a time; `bad` is told of each that can't be read."""
    count = max(1, _BLOCK // (size * size * channels))
    for start in range(0, len(files), count):
        block = files[start : start + count]
        pixels = np.empty((len(block), size, size, channels), np.uint8)
        labels: list[int] = []
        for path, label in block:
            try:
                with open_file(path) as file, open_picture(file, str(path), limit, FORMATS) as picture:
                    shrink(picture, str(path), file.tell(), size)
                    pixels[len(labels)] = _square(picture, size, channels)
                    labels.append(label)
            except InputError as error:
                bad(path, error)
        if labels:
            yield Part(str(block[0][0].parent), pixels[: len(labels)], np.array(labels, np.int64))


def _square(picture: Image, size: int, channels: int) -> NDArray[np.uint8]:
    """Upright, 8 bits, on black where transparent, scaled to cover the square and cropped to its middle."""
    from PIL import Image, ImageChops, ImageOps

    ImageOps.exif_transpose(picture, in_place=True)
    if picture.mode.startswith("I") or picture.mode == "F":
        # Pillow would clip 16 bits at 255; v / 257 maps 65535 to 255
        shallow = Image.new("L", picture.size)
        for top in range(0, picture.height, _STRIP):  # strip by strip: no other copy of the whole
            strip = np.asarray(picture.crop((0, top, picture.width, min(top + _STRIP, picture.height))))
            shallow.paste(Image.fromarray(np.clip(np.rint(strip / 257), 0, 255).astype(np.uint8)), (0, top))
        picture = shallow
    if picture.has_transparency_data:
        picture = picture if picture.mode == "RGBA" else picture.convert("RGBA")
        picture.paste((0, 0, 0), mask=ImageChops.invert(picture.getchannel("A")))
    mode = "L" if channels == 1 else "RGB"
    if picture.mode not in ("L", "RGB"):  # those two are the same scaled first, which copies less
        picture = picture.convert(mode)
    picture = ImageOps.fit(picture, (size, size), Image.Resampling.BICUBIC).convert(mode)
    return np.asarray(picture, np.uint8).reshape(size, size, channels)
