"""One picture opened by Pillow: its complaints become ours, its size is known before it is decoded."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from rkcnn.data.read.stream import DEFLATE_RATIO
from rkcnn.error import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

# a pixel in the file, before it is packed: PNG by deflate, JPEG at 1 bit or more for 64 values (ratio 512);
# WebP packs a flat picture of any size into a few bytes
_LEAST_BITS = {"RGB": 24, "RGBA": 32, "I;16": 16, "LA": 16, "CMYK": 32, "YCbCr": 24}
MOST = 256 << 20  # bytes of one decoded picture: 89 million RGB pixels, where Pillow too begins to suspect a bomb

ROOM = 40 << 20  # bytes that decoding one picture may take beyond 3 times its file
# bytes a pixel, measured: the picture, its conversions, the copies of its decoder
_COST, _COST_OF = 13, {"L": 2, "1": 6, "P": 6, "RGB": 5, "I;16": 5, "RGBA": 9}
_COST_WEBP, _COST_PROGRESSIVE, _COST_TURNED = 12, 6, 4


@contextmanager
def open_picture(file: BinaryIO, where: str, limit: int, formats: tuple[str, ...]) -> Iterator[Image]:
    """The picture, header read, nothing decoded; what Pillow raises in the block comes out as InputError."""
    from PIL import Image, UnidentifiedImageError

    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    if size > limit:
        raise InputError(f"{where}: holds {size} bytes, more than the {limit} allowed here")
    # in memory: Pillow asks for what a chunk claims to hold, and a file on disk gives memory for that first
    try:
        held = io.BytesIO(file.read())
    except OSError as error:
        raise InputError(f"{where}: can't be read ({error.strerror})") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a bomb, refused below; of odd metadata, unused
            with Image.open(held, formats=formats) as picture:
                width, height = picture.size
                if width * height * 3 > min(limit, MOST):
                    raise InputError(
                        f"{where}: claims {width} x {height} pixels, "
                        f"and {min(limit, MOST) // 3} are read at most; scale it down"
                    )
                bits = width * height * _LEAST_BITS.get(picture.mode, 1)
                if picture.format != "WEBP" and bits // 8 > size * DEFLATE_RATIO:
                    raise InputError(f"{where}: claims {width} x {height} pixels, more than {size} bytes can hold")
                yield picture
    except InputError:
        raise
    except UnidentifiedImageError:  # its text is the address of a buffer
        raise InputError(f"{where}: can't be read as {' or '.join(formats)} (it doesn't begin as one does)") from None
    except Exception as error:  # Pillow raises OSError, SyntaxError, ValueError, struct.error, EOFError and more
        raise InputError(
            f"{where}: can't be read as {' or '.join(formats)} ({type(error).__name__}: {error})"
        ) from None


def shrink(picture: Image, where: str, size: int, side: int) -> None:
    """Before decoding: a JPEG too large for its file's memory is decoded smaller, another picture refused."""
    room, whole = ROOM + 3 * size, picture.width * picture.height
    fixed = _COST_PROGRESSIVE * whole if picture.info.get("progressive") else 0
    cost = _COST if "transparency" in picture.info else _COST_OF.get(picture.mode, _COST)
    cost += _COST_WEBP if picture.format == "WEBP" else 0
    cost += _COST_TURNED if "exif" in picture.info else 0
    if picture.format == "JPEG" and cost * whole + fixed > room:
        picture.draft(picture.mode, (side, side))
    if cost * picture.width * picture.height + fixed > room:
        raise InputError(
            f"{where}: {whole} pixels are too many for a {picture.format} file of {size} bytes, of which "
            f"{room // (cost + (fixed and _COST_PROGRESSIVE))} are read at most; scale it down or save it as JPEG"
        )
