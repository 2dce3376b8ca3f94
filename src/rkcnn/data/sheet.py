"""A contact sheet: a row of pictures a class under the set's statistics; a person sees what goes in."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from rkcnn.data.disk import writing_to
from rkcnn.data.images import Images

if TYPE_CHECKING:
    from PIL.Image import Image

COLUMNS, MOST_ROWS = 12, 100
_LINE, _GAP, _NAME = 18, 4, 220  # pixels


def describe(images: Images) -> list[str]:
    """What the set is, as lines of text: size, content, measured and applied statistics."""
    count, channels, height, width = images.pixels.shape
    totals = torch.zeros(channels, 256, dtype=torch.int64)
    for start in range(0, count, 4096):  # a memory map larger than memory stays on disk
        block = images.pixels[start : start + 4096]
        for channel in range(channels):
            totals[channel] += torch.bincount(block[:, channel].flatten(), minlength=256)
    values = torch.arange(256, dtype=torch.float64) / 255
    shares = totals.double() / totals.sum(1, keepdim=True)
    mean = shares @ values
    std = ((shares @ values**2) - mean**2).clamp_min(0).sqrt()
    by_class = torch.bincount(images.labels, minlength=len(images.classes))
    return [
        f"{images.name} {images.part}: {count} images of {height} x {width} x {channels}, "
        f"{len(images.classes)} classes of {int(by_class.min())} to {int(by_class.max())}",
        f"measured mean {_row(mean.tolist())}, deviation {_row(std.tolist())}",
        f"normalised by mean {_row(images.mean)}, deviation {_row(images.std)}",
        f"{'content as published' if images.verified else 'UNVERIFIED content'}, "
        f"pixels sha256 {images.pixels_sha256[:16]}, labels sha256 {images.labels_sha256[:16]}",
    ]


def draw_sheet(images: Images) -> Image:
    """The sheet: the first pictures of each class in the set's order, enlarged to 48 pixels or more."""
    from PIL import Image, ImageDraw, ImageFont

    channels, height, width = images.pixels.shape[1:]
    scale = max(1, -(-48 // max(height, width)))
    cell_height, cell_width = height * scale + _GAP, width * scale + _GAP
    shown = min(len(images.classes), MOST_ROWS)
    lines = describe(images)
    if shown < len(images.classes):
        lines.append(f"the first {shown} of {len(images.classes)} classes")
    top = _LINE * len(lines) + 2 * _GAP
    sheet = Image.new("RGB", (_NAME + COLUMNS * cell_width, top + shown * max(cell_height, _LINE)), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=12)
    for number, line in enumerate(lines):
        pen.text((_GAP, _GAP + number * _LINE), line, fill="black", font=font)
    for label in range(shown):
        members = torch.nonzero(images.labels == label).flatten()
        y = top + label * max(cell_height, _LINE)
        pen.text((_GAP, y), f"{images.classes[label][:28]} ({len(members)})", fill="black", font=font)
        for column, index in enumerate(members[:COLUMNS].tolist()):
            pixels = images.pixels[index].permute(1, 2, 0).contiguous().numpy()
            picture = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
            enlarged = picture.resize((width * scale, height * scale), Image.Resampling.NEAREST)
            sheet.paste(enlarged, (_NAME + column * cell_width, y))
    return sheet


def save_sheet(images: Images, path: Path) -> None:
    """Writes the sheet as PNG under its name at once, or not at all."""
    sheet = draw_sheet(images)
    with (
        writing_to(path, "give another file with -o"),
        tempfile.TemporaryDirectory(prefix=".sheet-", dir=path.parent) as folder,
    ):
        sheet.save(Path(folder) / "sheet.png", format="PNG")
        (Path(folder) / "sheet.png").replace(path)


def _row(values: list[float] | tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{value:.4f}" for value in values) + ")"
