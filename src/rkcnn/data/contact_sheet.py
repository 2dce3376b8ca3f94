"""Contact sheets: a row of images for each class, or chosen images, each with lines of text under it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from rkcnn.data.histogram import mean_and_deviation
from rkcnn.data.images import Images
from rkcnn.disk import write_output
from rkcnn.error import InputError
from rkcnn.escape import escape_text

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

    Font = FreeTypeFont | ImageFont

COLUMNS, MOST_ROWS = 12, 100
SHEET_SIDE, CHOSEN_SIDE = 48, 96  # pixels: smaller pictures are enlarged at least to it
WIDEST, CAPTION = 1200, 128  # pixels: of a sheet of chosen images, and the room for text under one
FONT = "mpl-data/fonts/ttf/DejaVuSans.ttf"  # comes with matplotlib
FONT_SIZE = 13
_LINE, _GAP, _NAME = 18, 4, 220  # pixels


def describe(images: Images) -> list[str]:
    """Return lines of text about the set: its size, the measured and applied statistics, and its checksums."""
    count, channels, height, width = images.pixels.shape
    totals = torch.zeros(channels, 256, dtype=torch.int64)
    for start in range(0, count, 4096):  # a memory map larger than memory stays on disk
        block = images.pixels[start : start + 4096]
        for channel in range(channels):
            totals[channel] += torch.bincount(block[:, channel].flatten(), minlength=256)
    mean, std = zip(*(mean_and_deviation(counts) for counts in totals.numpy()), strict=True)
    by_class = torch.bincount(images.labels, minlength=len(images.classes))
    return [
        f"{images.name} {images.part}: {count} images of {height} x {width} x {channels}, "
        f"{len(images.classes)} classes of {int(by_class.min())} to {int(by_class.max())}",
        f"measured mean {_row(mean)}, deviation {_row(std)}",
        f"normalised by mean {_row(images.mean)}, deviation {_row(images.std)}",
        f"{images.origin}, pixels sha256 {images.pixels_sha256[:16]}, labels sha256 {images.labels_sha256[:16]}",
    ]


def load_font() -> Font:
    """Return DejaVu Sans, which has the letters of most alphabets, or Pillow's own font where matplotlib has none."""
    from PIL import ImageFont

    matplotlib = find_spec("matplotlib")  # its folder is enough; an import takes 0.5 s
    for folder in (matplotlib and matplotlib.submodule_search_locations) or ():
        with suppress(OSError):
            return ImageFont.truetype(str(Path(folder) / FONT), FONT_SIZE)
    return ImageFont.load_default(FONT_SIZE)


def fit_text(text: str, font: Font, width: float) -> str:
    """Return text, or its two ends with … between them where it is wider: classes may differ in either end alone."""
    kept, short = len(text), text
    while kept and font.getlength(short) > width:
        kept -= 1
        short = f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"
    return short


def draw_sheet(images: Images) -> Image:
    """Draw the first 12 images of each class, enlarged to 48 pixels or more, below what `describe` says."""
    from PIL import Image, ImageDraw

    scale = _scale(images, SHEET_SIDE)
    cell_width, cell_height = (scale * side + _GAP for side in (images.pixels.shape[3], images.pixels.shape[2]))
    shown = min(len(images.classes), MOST_ROWS)
    lines = describe(images)
    if shown < len(images.classes):
        lines.append(f"the first {shown} of {len(images.classes)} classes")
    top = _LINE * len(lines) + 2 * _GAP
    sheet = Image.new("RGB", (_NAME + COLUMNS * cell_width, top + shown * max(cell_height, _LINE)), "white")
    pen, font = ImageDraw.Draw(sheet), load_font()
    _write(pen, lines, font)
    for label in range(shown):
        members = torch.nonzero(images.labels == label).flatten()
        y = top + label * max(cell_height, _LINE)
        count = f" ({len(members)})"
        name = fit_text(escape_text(images.classes[label]), font, _NAME - 2 * _GAP - font.getlength(count))
        pen.text((_GAP, y), name + count, fill="black", font=font)
        for column, index in enumerate(members[:COLUMNS].tolist()):
            sheet.paste(_enlarge(images, index, scale), (_NAME + column * cell_width, y))
    return sheet


def draw_chosen(images: Images, chosen: Sequence[tuple[int, Sequence[str]]], lines: Sequence[str]) -> Image:
    """Draw the images `chosen`, each an index and the lines to write under it, below some lines about all of them.

    Small images are enlarged by a whole number, and what is wider than its room is shortened.
    """
    from PIL import Image, ImageDraw

    font, scale = load_font(), _scale(images, CHOSEN_SIDE)
    height, width = (scale * side for side in images.pixels.shape[2:])
    room = max(width, CAPTION)
    cell_width, cell_height = room + 2 * _GAP, height + _LINE * max((len(under) for _, under in chosen), default=0)
    cell_height += 2 * _GAP
    columns = max(1, min(len(chosen), COLUMNS, (WIDEST - _GAP) // cell_width))
    lines = [fit_text(escape_text(line), font, WIDEST - 2 * _GAP) for line in lines]
    widest = max(columns * cell_width - _GAP, int(max(map(font.getlength, lines), default=0)))
    top = _LINE * len(lines) + 2 * _GAP
    sheet = Image.new("RGB", (widest + 2 * _GAP, top + -(-len(chosen) // columns) * cell_height), "white")
    pen = ImageDraw.Draw(sheet)
    _write(pen, lines, font)
    for number, (index, under) in enumerate(chosen):
        x, y = _GAP + number % columns * cell_width, top + number // columns * cell_height
        sheet.paste(_enlarge(images, index, scale), (x, y))
        for i, line in enumerate(under):
            text = fit_text(escape_text(line), font, room)
            pen.text((x, y + height + i * _LINE), text, fill="black", font=font)
    return sheet


def save_sheet(sheet: Image, path: Path) -> None:
    """Write a sheet as PNG, completely or not at all; a folder, a pipe or a device is not replaced."""
    if path.suffix.lower() != ".png":
        raise InputError(f"{path}: a sheet is a PNG file; give a name that ends in .png")
    content = BytesIO()
    sheet.save(content, format="PNG")
    write_output(path, content.getvalue(), "give another file")


def _scale(images: Images, side: int) -> int:
    """Return by what whole number images are enlarged, so that they have so many pixels along their longer side."""
    return max(1, -(-side // max(images.pixels.shape[2:])))


def _enlarge(images: Images, index: int, scale: int) -> Image:
    from PIL import Image

    channels, height, width = images.pixels.shape[1:]
    pixels = images.pixels[index].permute(1, 2, 0).contiguous().numpy()
    image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
    return image.resize((width * scale, height * scale), Image.Resampling.NEAREST)


def _write(pen: ImageDraw, lines: Sequence[str], font: Font) -> None:
    for number, line in enumerate(lines):
        pen.text((_GAP, _GAP + number * _LINE), escape_text(line), fill="black", font=font)


def _row(values: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{value:.4f}" for value in values) + ")"
