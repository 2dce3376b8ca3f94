"""The contact sheet shows each class's own pictures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rkcnn.data.contact_sheet import describe, draw_chosen, draw_sheet, fit_text, load_font, save_sheet
from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.disk import DiskError
from rkcnn.error import InputError


def test_describes_what_was_measured_and_what_is_applied() -> None:
    train, _ = load_data_set("mnist-mini")
    lines = describe(train)
    assert lines[0] == "mnist-mini train: 10000 images of 28 x 28 x 1, 10 classes of 863 to 1127"
    assert lines[1] == "measured mean (0.1311), deviation (0.3087)"
    assert lines[2] == "normalised by mean (0.0000), deviation (1.0000)"
    assert lines[3].startswith("verified, pixels sha256 2f7182bf021ffc5c, labels")


def test_each_row_holds_its_class(tmp_path: Path) -> None:
    train, _ = load_data_set("mnist-mini")
    save_sheet(draw_sheet(train), tmp_path / "sheet.png")
    assert [path.name for path in tmp_path.iterdir()] == ["sheet.png"]
    with Image.open(tmp_path / "sheet.png") as picture:
        sheet = np.asarray(picture)
    first_seven = train.pixels[train.labels == 7][0, 0].numpy()
    top = 4 * 18 + 8 + 7 * 60
    assert (sheet[top : top + 56 : 2, 220 : 220 + 56 : 2, 0] == first_seven).all()


def test_a_set_of_many_classes_and_large_pictures_fits() -> None:
    labels = torch.arange(300)
    pixels = torch.zeros(300, 3, 64, 64, dtype=torch.uint8)
    names = tuple(f"class {number} with a long name" for number in range(300))
    many = Images("many", "train", pixels, labels, names, (0.0,) * 3, (1.0,) * 3, False, "0" * 64, "0" * 64)
    assert draw_sheet(many).size[1] == 5 * 18 + 8 + 100 * 68
    assert describe(many)[3].startswith("your own images, ")


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="its folder doesn't exist"):
        save_sheet(draw_sheet(load_data_set("mnist-mini")[1]), tmp_path / "no" / "sheet.png")


def test_only_a_regular_file_is_replaced(tmp_path: Path) -> None:
    sheet = Image.new("RGB", (4, 4))
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    for name in ("pipe.png", "folder.png"):
        with pytest.raises(DiskError, match=f"{name}.*give another file"):
            save_sheet(sheet, tmp_path / name)
    assert (tmp_path / "pipe.png").is_fifo()
    (tmp_path / "old.png").write_text("old")
    save_sheet(sheet, tmp_path / "old.png")
    with Image.open(tmp_path / "old.png") as picture:
        assert picture.size == (4, 4)


def test_a_name_that_is_no_png_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"give a name that ends in \.png"):
        save_sheet(Image.new("RGB", (4, 4)), tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def plain(classes: tuple[str, ...], side: int) -> Images:
    """Grey images, one of each class."""
    number = len(classes)
    pixels = torch.full((number, 1, side, side), 128, dtype=torch.uint8)
    return Images("plain", "test", pixels, torch.arange(number), classes, (0.0,), (1.0,), False, "0" * 64, "0" * 64)


@pytest.mark.parametrize("letter", ["ü", "ł", "ж", "λ", "…"])
def test_letters_of_other_languages_are_no_boxes(letter: str) -> None:
    """Pillow's own font draws a box for what it lacks, the same for each."""
    assert bytes(load_font().getmask(letter)) != bytes(load_font().getmask("\uffff"))


def test_without_matplotlib_there_is_pillows_font(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rkcnn.data.contact_sheet.find_spec", lambda _: None)
    assert load_font().getlength("cat") > 0
    monkeypatch.setattr("rkcnn.data.contact_sheet.FONT", "no/such.ttf")
    assert load_font().getlength("cat") > 0


def test_the_font_is_found_without_importing_matplotlib() -> None:
    code = "import sys; from rkcnn.data.contact_sheet import load_font; load_font(); print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_long_name_keeps_both_its_ends() -> None:
    font = load_font()
    assert fit_text("cat", font, 100) == "cat"
    short = fit_text("n02085620-a-very-long-name-of-a-Chihuahua", font, 128)
    assert short.startswith("n02085")
    assert short.endswith("huahua")
    assert "…" in short
    assert 110 < font.getlength(short) <= 128


@pytest.mark.parametrize(("side", "scale", "columns"), [(8, 12, 8), (28, 4, 8), (64, 2, 8), (150, 1, 7), (3000, 1, 1)])
def test_chosen_pictures_are_enlarged_by_whole_numbers_and_stand_close(side: int, scale: int, columns: int) -> None:
    images = plain(("a" * 60, "b" * 60), side)
    sheet = draw_chosen(images, [(0, ("a" * 60, "as " + "b" * 60, "97 %"))] * 10, ["title", "t" * 500])
    width = max(side * scale, 128) + 8
    rows = -(-10 // columns)
    assert sheet.size[0] <= max(1200, 3016), "neither a long name nor a long title widens it"
    assert sheet.size[1] == 2 * 18 + 8 + rows * (side * scale + 3 * 18 + 8)
    grey = np.argwhere((np.asarray(sheet) == 128).all(-1))
    at = [(4 + column * width, 44 + row * (side * scale + 62)) for row, column in np.ndindex(rows, columns)][:10]
    for x, y in at:
        assert (np.asarray(sheet)[y : y + side * scale, x : x + side * scale] == 128).all()
    assert len(grey) < 1.02 * 10 * (side * scale) ** 2


def test_a_name_stays_beside_its_row(tmp_path: Path) -> None:
    """Whatever its width, it doesn't reach into the pictures."""
    sheet = np.asarray(draw_sheet(plain(("W" * 60, "Katze ü"), 28)))
    top = 4 * 18 + 8
    assert (sheet[top : top + 60, 216:220] == 255).all()
    assert (sheet[top : top + 60, :216] < 255).any()
