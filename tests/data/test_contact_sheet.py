"""The contact sheet shows each class's own pictures."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from rkcnn.data.contact_sheet import describe, draw_sheet, save_sheet
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
