"""Image files decoded by Pillow: any size and mode in, squares out."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from rkcnn.data.read.archive import DEFLATE_RATIO
from rkcnn.data.read.image_files import SUFFIXES as SUFFIXES
from rkcnn.data.read.image_files import LabelledFiles
from rkcnn.data.read.labelled_pixels import LabelledPixels, is_grey
from rkcnn.disk import open_file
from rkcnn.error import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
DEFAULT_SIZE = 32  # pixels
AUTO_SIZES = range(16, 65, 8)  # that `size="auto"` chooses from
MEASURED_FILES = 200  # whose headers `size="auto"` reads
_RUN_LENGTHS = (1, 2)  # kinds of compression of a BMP, for which Pillow's decoder is slow
_GREY = ("1", "L", "LA", "La", "I", "F", "I;16", "I;16L", "I;16B", "I;16N")
_BLOCK = 16 << 20  # bytes of decoded images that are yielded together
_STRIP = 64  # rows of 16 bits made 8 at a time

MOST_DECODED = 256 << 20  # bytes of one decoded image: 89 million RGB pixels, where Pillow too begins to warn of a bomb
# bits of a pixel in the file before compression: PNG by deflate, JPEG at 1 bit or more for 64 values (ratio 512);
# WebP packs a flat image of any size into a few bytes
_LEAST_BITS = {"RGB": 24, "RGBA": 32, "I;16": 16, "LA": 16, "CMYK": 32, "YCbCr": 24}

DECODING_ROOM = 40 << 20  # bytes that decoding one image may take beyond 3 times its file
# bytes for each pixel, measured: the image, its conversions, the copies of its decoder
_COST, _COST_OF = 13, {"L": 2, "1": 6, "P": 6, "RGB": 5, "I;16": 5, "RGBA": 9}
_COST_WEBP, _COST_PROGRESSIVE, _COST_TURNED = 12, 6, 4

OnBad = Callable[[Path, InputError], None]  # called with each file that can't be read; it may raise


def are_grey(files: LabelledFiles, size: int, limit: int, on_bad: OnBad) -> bool:
    """Return whether every readable image is grey at that size.

    A file whose header says that it can have colours is decoded, one by one until a colour is found.
    """
    for path, _ in files:
        try:
            with open_file(path) as file, open_image(file, str(path), limit, FORMATS) as image:
                if image.mode not in _GREY and not is_grey(_decode(image, path, file, size, 3)[None]):
                    return False
        except InputError as error:
            on_bad(path, error)
    return True


def choose_size(files: list[Path], size: int | Literal["auto"] | None, limit: int) -> int:
    """Return the side of the square that images are scaled to, where `size` is asked for.

    `auto` is the median of the shorter sides of some of them, rounded down to one of AUTO_SIZES.
    """
    if size != "auto":
        return size or DEFAULT_SIZE
    sides = []
    for path in files[:: -(-len(files) // MEASURED_FILES)]:
        try:
            with open_file(path) as file, open_image(file, str(path), limit, FORMATS) as image:  # its header alone
                sides.append(min(image.size))
        except InputError:  # reading the folder will name it
            continue
    middle = sorted(sides)[len(sides) // 2] if sides else DEFAULT_SIZE
    return max((side for side in AUTO_SIZES if side <= middle), default=AUTO_SIZES[0])


def read_folder(files: LabelledFiles, size: int, channels: int, limit: int, on_bad: OnBad) -> Iterator[LabelledPixels]:
    """Yield the images as (N, size, size, channels), in blocks of at most 16 MB or one image.

    `limit` is the most bytes that one file may hold or decode to.
    """
    count = max(1, _BLOCK // (size * size * channels))
    for start in range(0, len(files), count):
        block = files[start : start + count]
        pixels = np.empty((len(block), size, size, channels), np.uint8)
        labels: list[int] = []
        for path, label in block:
            try:
                with open_file(path) as file, open_image(file, str(path), limit, FORMATS) as image:
                    pixels[len(labels)] = _decode(image, path, file, size, channels)
                    labels.append(label)
            except InputError as error:
                on_bad(path, error)
        if labels:
            yield LabelledPixels(str(block[0][0].parent), pixels[: len(labels)], np.array(labels, np.int64))


def _decode(image: Image, path: Path, file: BinaryIO, size: int, channels: int) -> NDArray[np.uint8]:
    """Return an opened image as (size, size, channels)."""
    bound_decoding(image, str(path), file.tell(), size)
    return fit_pixels(make_upright(image), size, size, channels)


@contextmanager
def open_image(file: BinaryIO, where: str, limit: int, formats: tuple[str, ...]) -> Iterator[Image]:
    """Open an image, its header read but nothing decoded; what Pillow raises in the block becomes InputError.

    An image is refused if its file or its pixels take more than `limit` bytes, or if the file is too small for the
    number of pixels that its header claims.
    """
    from PIL import Image, UnidentifiedImageError

    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    if size > limit:
        raise InputError(f"{where}: holds {size} bytes, more than the {limit} allowed here")
    # read into memory first: Pillow reads as many bytes as a chunk claims, for which a file on disk allocates memory
    try:
        content = io.BytesIO(file.read())
    except OSError as error:
        raise InputError(f"{where}: can't be read ({error.strerror})") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about bombs, refused below, and about odd metadata, unused
            with Image.open(content, formats=formats) as image:
                width, height = image.size
                if width * height * 3 > min(limit, MOST_DECODED):
                    raise InputError(
                        f"{where}: claims {width} x {height} pixels, "
                        f"and {min(limit, MOST_DECODED) // 3} are read at most; scale it down"
                    )
                bits = width * height * _LEAST_BITS.get(image.mode, 1)
                if image.format != "WEBP" and bits // 8 > size * DEFLATE_RATIO:
                    raise InputError(f"{where}: claims {width} x {height} pixels, more than {size} bytes can hold")
                if image.format == "BMP" and image.info.get("compression") in _RUN_LENGTHS:
                    raise InputError(f"{where}: is a BMP that is compressed, which isn't read; save it as PNG")
                yield image
    except InputError:
        raise
    except UnidentifiedImageError:  # its text is the address of a buffer
        raise InputError(f"{where}: can't be read as {' or '.join(formats)} (it doesn't begin as one does)") from None
    except Exception as error:  # Pillow raises OSError, SyntaxError, ValueError, struct.error, EOFError and more
        raise InputError(
            f"{where}: can't be read as {' or '.join(formats)} ({type(error).__name__}: {error})"
        ) from None


def bound_decoding(image: Image, where: str, size: int, side: int) -> None:
    """Before decoding, bound the memory that it takes by the size of the file, in bytes.

    A JPEG that would take more is decoded at a smaller scale; an image of another format is refused.
    """
    room, pixels = DECODING_ROOM + 3 * size, image.width * image.height
    fixed = _COST_PROGRESSIVE * pixels if image.info.get("progressive") else 0
    cost = _COST if "transparency" in image.info else _COST_OF.get(image.mode, _COST)
    cost += _COST_WEBP if image.format == "WEBP" else 0
    cost += _COST_TURNED if "exif" in image.info else 0
    if image.format == "JPEG" and cost * pixels + fixed > room:
        image.draft(image.mode, (side, side))
    if cost * image.width * image.height + fixed > room:
        raise InputError(
            f"{where}: {pixels} pixels are too many for a {image.format} file of {size} bytes, of which "
            f"{room // (cost + (fixed and _COST_PROGRESSIVE))} are read at most; scale it down or save it as JPEG"
        )


def make_upright(image: Image) -> Image:
    """Return the image turned as its EXIF tag says, in 8 bits, and black where transparent; it may be the one given."""
    from PIL import Image, ImageChops, ImageOps

    ImageOps.exif_transpose(image, in_place=True)
    if image.mode.startswith("I") or image.mode == "F":
        # Pillow would clip 16 bits at 255; v / 257 maps 65535 to 255
        shallow = Image.new("L", image.size)
        for top in range(0, image.height, _STRIP):  # strip by strip, so that there is no other copy of the whole
            strip = np.asarray(image.crop((0, top, image.width, min(top + _STRIP, image.height))))
            shallow.paste(Image.fromarray(np.clip(np.rint(strip / 257), 0, 255).astype(np.uint8)), (0, top))
        image = shallow
    if image.has_transparency_data:
        image = image if image.mode == "RGBA" else image.convert("RGBA")
        image.paste((0, 0, 0), mask=ImageChops.invert(image.getchannel("A")))
    return image


def fit_pixels(image: Image, height: int, width: int, channels: int) -> NDArray[np.uint8]:
    """Return an upright image as (height, width, channels), scaled to cover that size and cropped to its middle."""
    from PIL import Image, ImageOps

    mode = "L" if channels == 1 else "RGB"
    if image.mode not in ("L", "RGB"):  # these two give the same result when scaled first, which copies less
        image = image.convert(mode)
    image = ImageOps.fit(image, (width, height), Image.Resampling.BICUBIC).convert(mode)
    return np.asarray(image, np.uint8).reshape(height, width, channels)
