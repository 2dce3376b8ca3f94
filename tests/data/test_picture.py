"""Pictures, and ink on paper."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rkcnn.data.load import load_data_set
from rkcnn.data.picture import (
    Picture,
    PictureFormat,
    find_ink,
    find_pictures,
    fit_array,
    fit_picture,
    is_light_paper,
    read_bytes,
    read_picture,
)
from rkcnn.error import InputError


def photograph(digit: np.ndarray, side: int, left: int) -> Image.Image:
    """A digit in dark ink on paper of 300 x 200 with shade from 230 on the left to 150 on the right, and grain."""
    scaled = np.asarray(Image.fromarray(digit).resize((side, side), Image.Resampling.BICUBIC), float) / 255
    ink = np.zeros((200, 300))
    ink[20 : 20 + side, left : left + side] = scaled
    paper = np.linspace(230, 150, 300) * np.ones((200, 1))
    grain = np.random.default_rng(0).normal(0, 3, ink.shape)
    return Image.fromarray(np.clip(paper * (1 - ink) + 40 * ink + grain, 0, 255).astype(np.uint8))


def test_digits_are_told_from_their_negatives() -> None:
    for pixels in load_data_set("mnist-mini")[1].pixels[:100, 0].numpy():
        assert not is_light_paper(Image.fromarray(pixels))
        assert is_light_paper(Image.fromarray(255 - pixels))


def test_neither_empty_paper_nor_darkness_is_ink_on_paper() -> None:
    assert not is_light_paper(Image.new("L", (40, 40), 230))
    assert not is_light_paper(Image.new("L", (40, 40), 20))
    assert not is_light_paper(Image.new("L", (1, 1), 255))


def test_a_digit_is_found_wherever_it_stands_and_placed_as_in_mnist() -> None:
    digit = load_data_set("mnist-mini")[1].pixels[0, 0].numpy()
    for side, left in ((60, 5), (150, 140)):
        picture = photograph(digit, side, left)
        assert is_light_paper(picture)
        found = np.asarray(find_ink(picture, centred=True).resize((28, 28), Image.Resampling.BICUBIC), float)
        assert np.corrcoef(found.ravel(), digit.ravel())[0, 1] > 0.85
        assert found[:3].max() < 30, "black where the paper was"


def test_what_is_no_digit_keeps_its_place() -> None:
    picture = np.full((60, 90), 240, np.uint8)
    picture[10:50, 10:30] = 40
    ink = np.asarray(find_ink(Image.fromarray(picture), centred=False))
    assert ink.shape == (60, 90)
    assert ink[20, 20] == 255
    assert ink[:, 40:].max() == 0


COLOUR = PictureFormat(20, 30, 3)
GREY = PictureFormat(28, 28, 1, dark=True, digits=True)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK", "HSV", "F"])
def test_any_mode_and_size_becomes_what_the_network_takes(mode: str) -> None:
    image = Image.new("L", (50, 47), 255).convert(mode) if mode != "I;16" else Image.new("I;16", (50, 47), 65535)
    assert fit_picture(image, "a", COLOUR).pixels.shape == (20, 30, 3)
    assert fit_picture(image, "a", GREY).pixels.shape == (28, 28, 1)


def test_a_photograph_is_turned_as_its_exif_tag_says(tmp_path: Path) -> None:
    pixels = np.zeros((40, 40, 3), np.uint8)
    pixels[:20] = 255  # light above
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    Image.fromarray(pixels).save(tmp_path / "a.jpg", exif=exif)
    turned = read_picture(tmp_path / "a.jpg", COLOUR).pixels
    assert turned[:, 20:].min() > 200
    assert turned[:, :10].max() < 50


def test_pixels_of_the_networks_size_stay_as_they_are() -> None:
    for pixels in load_data_set("mnist-mini")[1].pixels[:20, 0].numpy():
        found = fit_array(pixels, "a", GREY)
        assert not found.inverted
        np.testing.assert_array_equal(found.pixels[..., 0], pixels)


def test_a_negative_is_inverted_unless_that_is_forbidden_or_the_network_knows_light_pictures() -> None:
    digit = 255 - load_data_set("mnist-mini")[1].pixels[0, 0].numpy()

    def read(wanted: PictureFormat, invert: bool | None = None) -> Picture:
        return fit_array(digit, "a", wanted, invert)

    assert read(GREY).inverted
    assert read(GREY).pixels[0].max() < 50
    assert not read(GREY, False).inverted
    assert not read(PictureFormat(28, 28, 1)).inverted
    coloured = read(PictureFormat(28, 28, 3), True)
    np.testing.assert_array_equal(coloured.pixels[..., 0], 255 - digit)


def test_the_format_follows_from_the_training_images() -> None:
    digits = tuple("0123456789")
    assert PictureFormat.of((28, 28), (0.0,), digits) == GREY
    assert PictureFormat.of((28, 28), (0.286,), ("shoe", "coat")) == PictureFormat(28, 28, 1, dark=True)
    assert PictureFormat.of((20, 30), (0.5,), digits) == PictureFormat(20, 30, 1)
    assert PictureFormat.of((20, 30), (0.0,), digits, brightness=0.8) == PictureFormat(20, 30, 1)
    assert PictureFormat.of((20, 30), (0.0, 0.0, 0.0), digits) == COLOUR


def test_pictures_of_a_folder_and_its_subfolders_are_found_in_order(tmp_path: Path) -> None:
    for name in ("b/2.PNG", "b/1.jpeg", "a.webp", "notes.txt", ".hidden.png", ".thumbnails/3.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b" / "3.png").symlink_to("nowhere")  # it is named when it can't be read
    os.mkfifo(tmp_path / "b" / "4.png")
    found = find_pictures(tmp_path)
    assert found.pictures == [tmp_path / name for name in ("a.webp", "b/1.jpeg", "b/2.PNG", "b/3.png", "b/4.png")]
    reasons = ("a link to a file that doesn't exist", "a pipe, not a file")
    for path, why in zip(found.pictures[3:], reasons, strict=True):
        with pytest.raises(InputError, match=f"{path}: can't be read .it is {why}"):
            read_picture(path, GREY)
    assert found.others == [tmp_path / "notes.txt"]
    assert find_pictures(tmp_path / "notes.txt").pictures == [tmp_path / "notes.txt"]


def test_a_folder_that_cant_be_read_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its owner would see it; root can read every folder."""
    (tmp_path / "locked").mkdir()
    (tmp_path / "a.png").touch()
    scan = os.scandir
    locked = {tmp_path / "locked"}

    def refuse(path: str) -> object:
        if Path(path) in locked:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr("os.scandir", refuse)
    found = find_pictures(tmp_path)
    assert found.pictures == [tmp_path / "a.png"]
    assert found.unreadable == {tmp_path / "locked": f"{tmp_path / 'locked'}: can't be read (Permission denied)"}
    locked.add(tmp_path)
    with pytest.raises(InputError, match=r"can't be read .Permission denied.; name a folder that can"):
        find_pictures(tmp_path)


def test_what_is_no_picture_gets_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file or folder"):
        find_pictures(tmp_path / "none")
    with pytest.raises(InputError, match=r"is a folder with no picture; put \.png"):
        find_pictures(tmp_path)
    with pytest.raises(InputError, match=r"standard input: there are no bytes"):
        read_bytes(b"", "standard input", GREY)
    buffer = io.BytesIO()
    Image.new("RGB", (30, 30)).save(buffer, "PNG")
    with pytest.raises(InputError, match=r"cut: can't be read as PNG or JPEG or WEBP"):
        read_bytes(buffer.getvalue()[:60], "cut", GREY)
    with pytest.raises(InputError, match="the network takes images of 2 channels"):
        read_bytes(buffer.getvalue(), "a", PictureFormat(28, 28, 2))
