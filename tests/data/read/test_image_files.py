"""Which files of a folder are images of which class, and what is said of the others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rkcnn.data.options import OwnOptions
from rkcnn.data.read.image_files import find_images, find_part_folders, find_parts
from rkcnn.error import InputError


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_pictures_that_are_left_out_are_counted(tmp_path: Path) -> None:
    touch(tmp_path, "a/1.png", "b/2.png", "loose.jpg", "README.txt", "a/deep/3.png", "a/deep/er/4.jpg", "a/deep/x.txt")
    (tmp_path / "b" / "gone.png").symlink_to(tmp_path / "nowhere")
    told: list[str] = []
    assert len(find_images(tmp_path, told.append).files) == 2
    assert told == [
        f"{tmp_path}: left out 1 picture (loose.jpg) beside the classes' folders",
        f"{tmp_path}: left out 2 pictures (3.png, ...) in folders inside a class's folder",
        f"{tmp_path}: left out 1 link (gone.png) to a file that doesn't exist",
    ]


def test_what_lies_beside_train_and_test_is_said(tmp_path: Path) -> None:
    touch(tmp_path, "train/a/1.png", "test/a/2.png", "val/a/3.png", "b/4.png", "loose.png", "notes.txt")
    told: list[str] = []
    assert find_part_folders(tmp_path, told.append) == {"train": tmp_path / "train", "test": tmp_path / "test"}
    assert told == [f"{tmp_path}: left out 3 items (b, ...) beside train/ and test/"]


def test_capitals_in_train_and_test_make_no_difference(tmp_path: Path) -> None:
    touch(tmp_path, "Train/a/1.png", "VAL/a/2.png")
    assert find_part_folders(tmp_path) == {"train": tmp_path / "Train", "test": tmp_path / "VAL"}
    touch(tmp_path, "train/a/1.png", "Test/a/2.png")
    assert find_part_folders(tmp_path) == {"train": tmp_path / "train", "test": tmp_path / "Test"}


def test_a_class_called_train_is_told_from_a_training_set(tmp_path: Path) -> None:
    touch(tmp_path, "train/1.png", "train/2.png", "plane/1.png", "plane/2.png")
    with pytest.raises(InputError, match=r"has train/, and needs .* both, .* or rename train/ if it is a class"):
        find_parts(tmp_path, OwnOptions(split=0.2), False, print)


def test_files_of_other_types_are_counted(tmp_path: Path) -> None:
    for name in ("a/1.gif", "a/2.GIF", "a/x.png", "a/.DS_Store", "b/3.tif", "b/read me"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    told: list[str] = []
    with pytest.raises(InputError, match="b: is a class with no image"):
        find_images(tmp_path, told.append)
    assert told == [f"{tmp_path}: left out 4 files of other types (.gif 2, .tif 1, no suffix 1)"]
    for number in range(9):
        (tmp_path / "a" / f"1.x{number}").touch()
    with pytest.raises(InputError):
        find_images(tmp_path, told.append)
    assert told[1].endswith("left out 13 files of other types (.gif 2, .x0 1, .x1 1, .x2 1, .x3 1, 7 more types)")


def test_classes_are_subfolders_by_name(tmp_path: Path) -> None:
    for name in ("b/2.PNG", "b/1.jpeg", "a/x.webp", "a/notes.txt", "a/.hidden.png", ".git/y.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = find_images(tmp_path)
    assert found.classes == ("a", "b")
    assert [(path.name, label) for path, label in found.files] == [("x.webp", 0), ("1.jpeg", 1), ("2.PNG", 1)]


def test_an_empty_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no subfolders"):
        find_images(tmp_path)
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError, match=r"class with no image; put \.png, \.jpg, \.jpeg, \.webp, \.bmp files in"):
        find_images(tmp_path)


@pytest.mark.timeout(20)
def test_only_regular_files_are_images(tmp_path: Path) -> None:
    (tmp_path / "a" / "folder.png").mkdir(parents=True)
    (tmp_path / "a" / "dangling.png").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "a" / "pipe.png")
    with pytest.raises(InputError, match="class with no image"):
        find_images(tmp_path)
    (tmp_path / "there").write_bytes(b"")
    (tmp_path / "a" / "linked.png").symlink_to(tmp_path / "there")
    assert [path.name for path, _ in find_images(tmp_path).files] == ["linked.png"]


def test_a_folder_that_cant_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    whole = Path.iterdir

    def iterdir(path: Path) -> Any:  # the tests may run as root, whom no mode stops
        if path.name == "a":
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    with pytest.raises(InputError, match=r"/a: can't be read \(Permission denied\)"):
        find_images(tmp_path)


def test_a_class_whose_name_is_no_utf_8(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"cl\xff\xfe")).mkdir()
    with pytest.raises(InputError, match=r"the class folder 'cl\\udcff\\udcfe' is no UTF-8; rename it"):
        find_images(tmp_path)
