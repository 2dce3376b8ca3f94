"""Contact sheets: a row of images for each class, or chosen images, each with a line of text under it."""

from __future__ import annotations

from collections.abc import Sequence
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


def draw_sheet(images: Images) -> Image:
    """Draw the first 12 images of each class, enlarged to 48 pixels or more, below what `describe` says."""
    from PIL import Image, ImageDraw, ImageFont

    cell_width, cell_height = _cell(images)
    shown = min(len(images.classes), MOST_ROWS)
    lines = describe(images)
    if shown < len(images.classes):
        lines.append(f"the first {shown} of {len(images.classes)} classes")
    top = _LINE * len(lines) + 2 * _GAP
    sheet = Image.new("RGB", (_NAME + COLUMNS * cell_width, top + shown * max(cell_height, _LINE)), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=12)
    _write(pen, lines, font)
    for label in range(shown):
        members = torch.nonzero(images.labels == label).flatten()
        y = top + label * max(cell_height, _LINE)
        pen.text((_GAP, y), f"{escape_text(images.classes[label])[:28]} ({len(members)})", fill="black", font=font)
        for column, index in enumerate(members[:COLUMNS].tolist()):
            sheet.paste(_enlarge(images, index), (_NAME + column * cell_width, y))
    return sheet


def draw_chosen(images: Images, chosen: Sequence[tuple[int, str]], lines: Sequence[str]) -> Image:
    """Draw the images `chosen`, each an index and the text to write under it, below some lines about all of them."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=12)
    chosen = [(index, escape_text(text)) for index, text in chosen]
    lines = [escape_text(line) for line in lines]
    cell_width, cell_height = _cell(images)
    widest = max((font.getlength(text) for _, text in chosen), default=0)
    cell_width, cell_height = max(cell_width, int(widest) + 3 * _GAP), cell_height + _LINE
    top = _LINE * len(lines) + 2 * _GAP
    rows = -(-len(chosen) // COLUMNS)
    columns = min(len(chosen), COLUMNS)
    width = max(columns * cell_width, int(max(map(font.getlength, lines), default=0))) + 2 * _GAP
    sheet = Image.new("RGB", (width, top + rows * cell_height + _GAP), "white")
    pen = ImageDraw.Draw(sheet)
    _write(pen, lines, font)
    for number, (index, text) in enumerate(chosen):
        x, y = _GAP + number % COLUMNS * cell_width, top + number // COLUMNS * cell_height
        sheet.paste(_enlarge(images, index), (x, y))
        pen.text((x, y + cell_height - _LINE - _GAP), text, fill="black", font=font)
    return sheet


def save_sheet(sheet: Image, path: Path) -> None:
    """Write a sheet as PNG, completely or not at all; a folder, a pipe or a device is not replaced."""
    if path.suffix.lower() != ".png":
        raise InputError(f"{path}: a sheet is a PNG file; give a name that ends in .png")
    content = BytesIO()
    sheet.save(content, format="PNG")
    write_output(path, content.getvalue(), "give another file")


def _scale(images: Images) -> int:
    """Return how many times an image is enlarged."""
    return max(1, -(-48 // max(images.pixels.shape[2:])))


def _cell(images: Images) -> tuple[int, int]:
    """Return the width and height of an enlarged image with its gap, in pixels."""
    height, width = images.pixels.shape[2:]
    return width * _scale(images) + _GAP, height * _scale(images) + _GAP


def _enlarge(images: Images, index: int) -> Image:
    from PIL import Image

    channels, height, width = images.pixels.shape[1:]
    pixels = images.pixels[index].permute(1, 2, 0).contiguous().numpy()
    image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
    scale = _scale(images)
    return image.resize((width * scale, height * scale), Image.Resampling.NEAREST)


def _write(pen: ImageDraw, lines: Sequence[str], font: Font) -> None:
    for number, line in enumerate(lines):
        pen.text((_GAP, _GAP + number * _LINE), escape_text(line), fill="black", font=font)


def _row(values: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{value:.4f}" for value in values) + ")"
