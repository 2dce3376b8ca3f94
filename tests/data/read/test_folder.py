"""Own images of any size and mode; sizes known before anything is decoded."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rkcnn.data.read.folder import are_grey, open_image, read_folder
from rkcnn.error import InputError


def refuse(_: Path, error: InputError) -> None:
    raise error


def read_one(path: Path, size: int, channels: int = 3) -> Any:
    return next(read_folder(((path, 0),), size, channels, 10**9, refuse)).pixels[0]


def ramp(height: int = 8, width: int = 8) -> Any:
    return np.arange(height * width * 3, dtype=np.uint8).reshape(height, width, 3)


def test_a_picture_of_the_right_size_is_untouched(tmp_path: Path) -> None:
    Image.fromarray(ramp()).save(tmp_path / "a.png")
    assert (read_one(tmp_path / "a.png", 8) == ramp()).all()


def test_a_wide_picture_is_scaled_and_cropped_to_its_middle(tmp_path: Path) -> None:
    pixels = np.zeros((20, 60, 3), np.uint8)
    pixels[:, 20:40] = 200  # the middle square alone
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert (read_one(tmp_path / "a.png", 20) == 200).all()
    assert read_one(tmp_path / "a.png", 10).shape == (10, 10, 3)


def test_every_mode_becomes_eight_bit_rgb(tmp_path: Path) -> None:
    colour = np.full((4, 4, 3), (10, 20, 30), np.uint8)
    deep = np.full((4, 4), 257 * 99, np.uint16)
    clear = np.full((4, 4, 4), (100, 50, 200, 0), np.uint8)
    clear[:2, :, 3] = 255
    pictures = {
        "rgb": Image.fromarray(colour),
        "grey": Image.fromarray(colour[..., 1]),
        "palette": Image.fromarray(colour).quantize(4),
        "deep": Image.fromarray(deep),
        "rgba": Image.fromarray(clear),
        "la": Image.fromarray(clear).convert("LA"),
        "one": Image.fromarray(np.full((4, 4), 255, np.uint8)).convert("1"),
    }
    read = {}
    for name, picture in pictures.items():
        picture.save(tmp_path / f"{name}.png")
        read[name] = read_one(tmp_path / f"{name}.png", 4)
    assert (read["rgb"] == colour).all()
    assert (read["grey"] == 20).all()
    assert (read["palette"] == colour).all()
    assert (read["deep"] == 99).all()  # not clipped to 255
    assert (read["rgba"][:2] == (100, 50, 200)).all()
    assert (read["rgba"][2:] == 0).all()  # transparent is black
    assert (read["la"][2:] == 0).all()
    assert (read["one"] == 255).all()


def test_half_transparent_is_half_black(tmp_path: Path) -> None:
    Image.fromarray(np.full((2, 2, 4), (200, 100, 50, 128), np.uint8)).save(tmp_path / "a.png")
    assert read_one(tmp_path / "a.png", 2)[0, 0].tolist() == [100, 50, 25]


def test_a_photograph_on_its_side_is_put_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6  # turn right by 90 degrees
    pixels = np.zeros((16, 16, 3), np.uint8)
    pixels[:8] = 255
    Image.fromarray(pixels).save(tmp_path / "a.jpg", exif=exif, quality=95)
    upright = read_one(tmp_path / "a.jpg", 16)
    assert upright[:, 12:].mean() > 250
    assert upright[:, :4].mean() < 5


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "bmp"])
def test_formats(suffix: str, tmp_path: Path) -> None:
    Image.fromarray(np.full((9, 9, 3), 120, np.uint8)).save(tmp_path / f"a.{suffix}")
    assert abs(int(read_one(tmp_path / f"a.{suffix}", 4).mean()) - 120) <= 2


def test_grey_files_are_told_from_coloured_ones(tmp_path: Path) -> None:
    Image.fromarray(ramp()[..., 0]).save(tmp_path / "a.png")
    Image.fromarray(3 * ramp()).save(tmp_path / "b.png")
    files = [(tmp_path / name, 0) for name in ("a.png", "b.png")]
    assert are_grey(tuple(files[:1]), 8, 10**9, refuse)
    assert not are_grey(tuple(files), 8, 10**9, refuse)
    assert read_one(tmp_path / "a.png", 8, channels=1).shape == (8, 8, 1)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("a.png", "RGB"),
        ("a.png", "RGBA"),
        ("a.png", "P"),
        ("a.jpg", "RGB"),
        ("a.jpg", "CMYK"),
        ("a.webp", "RGB"),
        ("a.bmp", "RGB"),
    ],
)
def test_grey_pixels_are_grey_whatever_the_mode_of_the_file(name: str, mode: str, tmp_path: Path) -> None:
    grey = np.random.RandomState(0).randint(0, 256, (30, 40), np.uint8)
    for pixels, expected in ((np.stack([grey] * 3, 2), True), (np.stack([grey, grey, grey // 2], 2), False)):
        Image.fromarray(pixels).convert(mode, palette=Image.Palette.ADAPTIVE).save(tmp_path / name)
        assert are_grey(((tmp_path / name, 0),), 16, 10**9, refuse) is expected


def test_a_compressed_bmp_is_refused(tmp_path: Path) -> None:
    Image.fromarray(ramp()[..., 0]).save(tmp_path / "a.bmp")
    content = bytearray((tmp_path / "a.bmp").read_bytes())
    content[30] = 1  # RLE8
    (tmp_path / "a.bmp").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.bmp: is a BMP that is compressed, which isn't read; save it as PNG"):
        read_one(tmp_path / "a.bmp", 8)


def test_a_text_file_named_png_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("not a picture")
    with pytest.raises(InputError, match=r"a\.png: can't be read as PNG") as refused:
        read_one(tmp_path / "a.png", 8)
    assert "0x" not in str(refused.value)


def test_a_file_that_cant_be_opened_is_bad_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "a.png").symlink_to(tmp_path / "a.png")  # a ring: removed or barred after it was found
    told: list[str] = []
    assert not list(read_folder(((tmp_path / "a.png", 0),), 8, 3, 10**9, lambda _, error: told.append(str(error))))
    assert are_grey(((tmp_path / "a.png", 0),), 8, 10**9, lambda _, error: told.append(str(error)))
    assert len(told) == 2
    assert all("a.png: can't be read (" in text for text in told)


def test_blocks_are_bounded_by_bytes(tmp_path: Path) -> None:
    Image.fromarray(ramp()).save(tmp_path / "a.png")
    parts = list(read_folder(((tmp_path / "a.png", 0),) * 3, 2048, 3, 10**9, refuse))
    assert [len(part.labels) for part in parts] == [1, 1, 1]  # of 12 MB each


def saved(kind: str, side: int) -> io.BytesIO:
    file = io.BytesIO()
    Image.fromarray(np.zeros((side, side, 3), np.uint8)).save(file, kind)
    return file


def test_opens_without_decoding() -> None:
    with open_image(saved("PNG", 30), "here", 10_000, ("PNG",)) as image:
        assert image.size == (30, 30)


def test_a_image_over_the_limit_is_refused() -> None:
    with (
        pytest.raises(InputError, match="claims 100 x 100"),
        open_image(saved("PNG", 100), "here", 29_999, ("PNG",)),
    ):
        pass


def test_a_format_not_asked_for_is_refused() -> None:
    formats = ("PNG", "JPEG")
    with (
        pytest.raises(InputError, match="can't be read as PNG or JPEG"),
        open_image(saved("GIF", 9), "here", 10_000, formats),
    ):
        pass


def test_what_goes_wrong_inside_is_an_input_error_too() -> None:
    whole = saved("JPEG", 64).getvalue()
    with (
        pytest.raises(InputError, match="here: can't be read as JPEG"),
        open_image(io.BytesIO(whole[:-300]), "here", 100_000, ("JPEG",)) as image,
    ):
        image.load()
