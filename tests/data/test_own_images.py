"""folder:PATH and npz:PATH through the one way in."""

from __future__ import annotations

import io
import os
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from rkcnn.data import own_images
from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set, load_test_images
from rkcnn.data.options import BELOW_SHARE, BY_CONTENT_ALONE, OwnOptions, SplitOptions
from rkcnn.data.progress import Progress
from rkcnn.data.read.folder import read_folder
from rkcnn.data.split import place_files
from rkcnn.disk import lock_folder
from rkcnn.error import InputError


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RKCNN_DATA", str(tmp_path / "data"))


def picture(path: Path, colour: tuple[int, int, int], size: tuple[int, int] = (20, 30)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    for number in range(4):
        picture(root / "train" / "cat" / f"{number}.png", (number, 0, 0), (20 + number, 30))
        picture(root / "train" / "dog" / f"{number}.webp", (200, 0, 0))
    picture(root / "val" / "dog" / "x.jpg", (200, 0, 0))
    return root


def test_a_folder_with_train_and_val(folder: Path) -> None:
    train, test = load_data_set(f"folder:{folder}")
    assert (train.classes, len(train), len(test)) == (("cat", "dog"), 8, 1)
    assert train.pixels.shape == (8, 3, 32, 32)
    assert train.pixels[:4, 0, 5, 5].tolist() == [0, 1, 2, 3]
    assert test.labels.tolist() == [1]  # by the training set's names, though val/ has one class alone
    assert train.mean[0] == pytest.approx(train.pixels[:, 0].double().mean().item() / 255)
    assert train.std[0] == pytest.approx(train.pixels[:, 0].double().std(correction=0).item() / 255)
    assert train.std[1] == 1.0  # no deviation to divide by
    assert not train.verified


def test_size_is_a_choice_and_decoding_happens_once(folder: Path, tmp_path: Path) -> None:
    load_data_set(f"folder:{folder}", own=OwnOptions(size=16))
    stored = next((tmp_path / "data" / "decoded").glob("own-*"))
    before = (stored / "train.pixels").stat().st_ino
    assert load_data_set(f"folder:{folder}", own=OwnOptions(size=16))[0].pixels.shape[1:] == (3, 16, 16)
    assert (stored / "train.pixels").stat().st_ino == before
    picture(folder / "train" / "cat" / "0.png", (99, 0, 0))
    assert (
        load_data_set(f"folder:{folder}", own=OwnOptions(size=16))[0].pixels[0, 0, 0, 0] == 99
    )  # changed, so read again


def test_damaged_pixels_are_decoded_again(folder: Path, tmp_path: Path) -> None:
    before = load_data_set(f"folder:{folder}")[0]
    stored = next((tmp_path / "data" / "decoded").glob("own-*"))
    (stored / "train.pixels").write_bytes(b"\x7f" * (stored / "train.pixels").stat().st_size)
    said = io.StringIO()
    after = load_data_set(f"folder:{folder}", progress=Progress(said))[0]
    after.check()
    assert after.pixels_sha256 == before.pixels_sha256
    assert "have changed since they were decoded; they are decoded again" in said.getvalue().splitlines()[0]


def test_classes_alone_with_a_stated_split(folder: Path) -> None:
    with pytest.raises(InputError, match=r"state the share to set apart, say `split=0\.2`"):
        load_data_set(f"folder:{folder / 'train'}")
    train, test = load_data_set(f"folder:{folder / 'train'}", own=OwnOptions(split=0.25))
    assert len(train) + len(test) == 8
    assert set(train.labels.tolist()) == set(test.labels.tolist()) == {0, 1}
    again = load_data_set(f"folder:{folder / 'train'}", own=OwnOptions(split=0.25, size=8))
    assert again[1].labels.tolist() == test.labels.tolist(), "the size doesn't matter"


def many(root: Path, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        picture(root / "ab"[number % 2] / f"{number}.png", (number, 0, 0), (8, 8))


def values(images: Images) -> set[int]:
    return set(images.pixels[:, 0, 4, 4].tolist())


def test_a_picture_more_or_less_moves_no_other(tmp_path: Path) -> None:
    many(tmp_path / "grow", 60)
    data, own = f"folder:{tmp_path / 'grow'}", OwnOptions(size=8, split=0.2)
    training, test = load_data_set(data, own=own)
    assert isinstance(test.own, SplitOptions)
    assert test.own.split_rule == BY_CONTENT_ALONE
    many(tmp_path / "grow", 20, first=60)
    for name in ("a/0.png", "b/1.png"):
        (tmp_path / "grow" / name).unlink()
    more, others = load_data_set(data, own=own)
    assert values(more) & values(test) == values(others) & values(training) == set()
    again = load_data_set(data, own=own)[1].own
    assert again == others.own, "the decoded copy remembers the rule"


def test_the_images_below_the_share_alone(tmp_path: Path) -> None:
    many(tmp_path / "some", 40)
    picture(tmp_path / "some" / "one" / "1.png", (0, 0, 0), (8, 8))  # a class with one image, which no split has
    own = SplitOptions(size=8, split=0.3, split_rule=BELOW_SHARE)
    files = sorted((tmp_path / "some").rglob("*.png"))
    expected = place_files(files, 10**6) < 0.3
    for _ in range(2):
        assert len(load_test_images(f"folder:{tmp_path / 'some'}", own=own)) == expected.sum()


def test_too_many_bytes_are_refused_before_anything_is_resized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many(tmp_path / "photos", 6)
    data = f"folder:{tmp_path / 'photos'}"
    with monkeypatch.context() as patched:
        patched.setattr(own_images, "are_grey", lambda *_: pytest.fail("looked at"))
        with pytest.raises(
            InputError, match=r"6 images of 100000 x 100000 take \d+ bytes, more than `max_bytes="
        ) as said:
            load_data_set(data, own=OwnOptions(size=100_000, split=0.5))
        with pytest.raises(InputError, match="more than `max_bytes=100`"):
            load_data_set(data, own=OwnOptions(size=8, split=0.5, max_bytes=100))
    assert "skip_bad" not in str(said.value)
    with pytest.raises(InputError, match="6 images of 20000 x 20000 take 7200000000 bytes"):
        load_data_set(data, own=OwnOptions(size=20_000, split=0.5))
    load_data_set(data, own=OwnOptions(size=8, split=0.5))
    with pytest.raises(InputError, match="6 images of 8 x 8 take 1152 bytes, more than `max_bytes=1000`"):
        load_data_set(data, own=OwnOptions(size=8, split=0.5, max_bytes=1000))


def test_mixed_sizes_and_modes_become_one(folder: Path) -> None:
    cat = folder / "train" / "cat"
    Image.new("L", (9, 50), 7).save(cat / "grey.png")
    Image.new("RGBA", (64, 64), (1, 2, 3, 255)).save(cat / "rgba.png")
    Image.new("P", (10, 10)).save(cat / "palette.png")
    Image.fromarray(np.full((5, 5), 257 * 40, np.uint16)).save(cat / "sixteen.png")
    train, _ = load_data_set(f"folder:{folder}")
    by_name = dict(zip(sorted(path.name for path in cat.iterdir()), train.pixels[:8, :, 9, 9].tolist(), strict=True))
    assert by_name["grey.png"] == [7, 7, 7]
    assert by_name["rgba.png"] == [1, 2, 3]
    assert by_name["sixteen.png"] == [40, 40, 40]


def test_only_grey_pictures_have_one_channel(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for part in ("train", "test"):
            (tmp_path / "grey" / part / name).mkdir(parents=True)
            Image.new("L", (8, 8), 50).save(tmp_path / "grey" / part / name / "x.png")
    assert load_data_set(f"folder:{tmp_path / 'grey'}")[0].pixels.shape == (2, 1, 32, 32)


@pytest.mark.parametrize("mode", ["RGBA", "P", "RGB"])
def test_one_grey_picture_in_a_file_for_colours_changes_nothing(mode: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "grey" / name).mkdir(parents=True)
        for number in range(3):
            Image.new("L", (8, 8), 50 * number).save(tmp_path / "grey" / name / f"{number}.png")
    Image.new("L", (8, 8), 70).convert(mode).save(tmp_path / "grey" / "a" / "3.png")
    data, own = f"folder:{tmp_path / 'grey'}", OwnOptions(size=8, split=0.5)
    train, test = load_data_set(data, own=own)
    assert train.pixels.shape[1:] == (1, 8, 8)
    assert {*train.pixels[:, 0, 4, 4].tolist(), *test.pixels[:, 0, 4, 4].tolist()} == {0, 50, 70, 100}
    Image.new("RGB", (8, 8), (70, 0, 0)).save(tmp_path / "grey" / "a" / "3.png")
    assert load_data_set(data, own=own)[0].pixels.shape[1:] == (3, 8, 8)


def test_the_channels_are_a_choice(folder: Path, tmp_path: Path) -> None:
    data, decoded = f"folder:{folder}", tmp_path / "data" / "decoded"
    grey, _ = load_data_set(data, own=OwnOptions(channels=1))
    colour, _ = load_data_set(data)
    assert (grey.pixels.shape[1], colour.pixels.shape[1], grey.own.channels, colour.own.channels) == (1, 3, 1, None)
    expected = [Image.fromarray(each.permute(1, 2, 0).numpy()).convert("L") for each in colour.pixels]
    assert (grey.pixels[:, 0].numpy() == np.stack([np.asarray(each) for each in expected])).all()
    assert load_data_set(data, own=OwnOptions(channels=3))[0].pixels_sha256 == colour.pixels_sha256
    assert len(list(decoded.glob("own-*"))) == 2, "what has three channels is not decoded again"


def test_channels_of_an_npz(tmp_path: Path) -> None:
    grey = np.random.RandomState(0).randint(0, 256, (6, 8, 8), np.uint8)
    labels = np.arange(6) % 2
    np.savez(tmp_path / "grey.npz", x_train=np.stack([grey] * 3, 3), y_train=labels, x_test=grey, y_test=labels)
    train, test = load_data_set(f"npz:{tmp_path / 'grey.npz'}")
    assert (train.pixels[:, 0].numpy() == grey).all()
    assert train.pixels.shape == test.pixels.shape == (6, 1, 8, 8)
    train, _ = load_data_set(f"npz:{tmp_path / 'grey.npz'}", own=OwnOptions(channels=3))
    train.check()
    assert (train.pixels.numpy() == grey[:, None]).all()
    assert train.pixels.shape == (6, 3, 8, 8)


def test_all_images_can_be_test_images(folder: Path, tmp_path: Path) -> None:
    said = io.StringIO()
    flat = f"folder:{folder / 'train'}"
    picture(folder / "train" / "eel" / "1.png", (0, 0, 0))  # one image alone, which no split can have
    for _ in range(2):  # decoded, and from the decoded copy
        test = load_test_images(flat, progress=Progress(said))
        assert (len(test), test.part, test.labels.tolist()) == (9, "test", [0] * 4 + [1] * 4 + [2])
        assert (
            said.getvalue().splitlines()[-1]
            == f"{flat} has no test set of its own: all of its 9 images are test images"
        )
    test.check()
    with pytest.raises(InputError, match="has no test set of its own; state the share"):
        load_data_set(flat)
    os.unlink(folder / "train" / "eel" / "1.png")
    os.rmdir(folder / "train" / "eel")
    assert 2 <= len(load_test_images(flat, own=OwnOptions(split=0.25))) <= 6
    assert len(load_test_images(f"folder:{folder}")) == 1
    np.savez(tmp_path / "a.npz", x_train=np.zeros((4, 9, 9), np.uint8), y_train=np.arange(4) % 2)
    assert len(load_test_images(f"npz:{tmp_path / 'a.npz'}")) == 4
    assert len(load_test_images("mnist-mini")) == 2000


def test_what_was_left_out_is_said_every_time(folder: Path) -> None:
    cat = folder / "train" / "cat"
    for number in range(7):
        (cat / f"bad{number}.png").write_text("hello")
    (cat / "notes.txt").touch()
    told = []
    for _ in range(3):
        said = io.StringIO()
        load_data_set(f"folder:{folder}", own=OwnOptions(skip_bad=True), progress=Progress(said))
        told.append(said.getvalue())
    assert told[0].count("left out: ") == 7
    assert told[1] == told[2]
    assert told[1].count("bad") == 5
    assert "left out: 2 more files that can't be read" in told[1]
    assert all(f"{folder / 'train'}: left out 1 file of other types (.txt 1)" in each for each in told)


def test_a_bad_file_is_named_and_skipped_only_if_told(folder: Path, tmp_path: Path) -> None:
    (folder / "train" / "cat" / "9.png").write_text("hello")
    with pytest.raises(InputError, match=r"9\.png: can't be read as .*`skip_bad=True` would leave it out"):
        load_data_set(f"folder:{folder}")
    assert not list((tmp_path / "data").rglob("*.pixels"))
    assert len(load_data_set(f"folder:{folder}", own=OwnOptions(skip_bad=True))[0]) == 8


def test_skipping_never_empties_a_class(folder: Path, tmp_path: Path) -> None:
    (folder / "train" / "eel").mkdir()
    (folder / "train" / "eel" / "1.png").write_text("hello")
    with pytest.raises(InputError, match="train/eel: is a class of which no image can be read"):
        load_data_set(f"folder:{folder}", own=OwnOptions(skip_bad=True))
    assert not list((tmp_path / "data").rglob("*.pixels"))


def test_a_change_behind_a_linked_class_is_noticed(folder: Path, tmp_path: Path) -> None:
    os.rename(folder / "train" / "cat", tmp_path / "elsewhere")
    (folder / "train" / "cat").symlink_to(tmp_path / "elsewhere")
    assert load_data_set(f"folder:{folder}")[0].pixels[0, 0, 0, 0] == 0
    picture(tmp_path / "elsewhere" / "0.png", (99, 0, 0))
    assert load_data_set(f"folder:{folder}")[0].pixels[0, 0, 0, 0] == 99


def test_names_that_are_not_utf8_are_read(folder: Path) -> None:
    os.rename(folder / "train" / "cat" / "0.png", os.fsencode(folder) + b"/train/cat/\xff.png")
    assert len(load_data_set(f"folder:{folder}")[0]) == 8


def test_what_another_process_decoded_meanwhile_is_not_decoded_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = []

    def counted(*given: Any) -> Any:
        times.append(1)
        return read_folder(*given)

    @contextmanager
    def late(*_: Any, **__: Any) -> Iterator[None]:
        with monkeypatch.context() as other:
            other.setattr(own_images, "lock_folder", lock_folder)
            load_data_set(f"folder:{folder}")
        yield

    monkeypatch.setattr(own_images, "read_folder", counted)
    monkeypatch.setattr(own_images, "lock_folder", late)
    assert len(load_data_set(f"folder:{folder}")[0]) == 8
    assert len(times) == 2  # train and test


@pytest.mark.parametrize(
    ("change", "own", "says"),
    [
        (lambda root: (root / "train" / "eel").mkdir(), OwnOptions(), "eel: is a class with no image"),
        (lambda root: picture(root / "val" / "eel" / "1.png", (0, 0, 0)), OwnOptions(), "class eel is not in"),
        (
            lambda root: os.rename(root / "val", root / "other"),
            OwnOptions(),
            r"needs train/ and test/ \(or val/\) both",
        ),
        (lambda root: None, OwnOptions(max_bytes=20_000), "more than `max_bytes=20000`"),
    ],
)
def test_refuses_folders(change: Any, own: OwnOptions, says: str, folder: Path) -> None:
    change(folder)
    with pytest.raises(InputError, match=says):
        load_data_set(f"folder:{folder}", own=own)


@pytest.mark.parametrize("name", ["folder:/no/such/place", "npz:/no/such/file.npz"])
def test_refuses_what_is_not_there(name: str) -> None:
    with pytest.raises(InputError, match=r"is not a f(older|ile)"):
        load_data_set(name)


@pytest.mark.parametrize("kind", ["folder", "npz"])
def test_refuses_no_path_and_what_cant_be_one(kind: str) -> None:
    with pytest.raises(InputError, match="put its path after the colon"):
        load_data_set(f"{kind}:")
    for path in ("~nobody-of-that-name/x", "a\0b"):
        with pytest.raises(InputError, match="can't be a path"):
            load_data_set(f"{kind}:{path}")


def test_npz_with_and_without_a_test_set(tmp_path: Path) -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (10, 12, 12, 3), np.uint8)
    labels = np.arange(10) % 3
    np.savez(tmp_path / "both.npz", x_train=pixels, y_train=labels, x_test=pixels[:2], y_test=labels[:2])
    train, test = load_data_set(f"npz:{tmp_path / 'both.npz'}")
    assert (train.pixels.numpy() == pixels.transpose(0, 3, 1, 2)).all()
    assert test.labels.tolist() == [0, 1]
    np.savez(tmp_path / "one.npz", x_train=pixels, y_train=labels)
    train, test = load_data_set(f"npz:{tmp_path / 'one.npz'}", own=OwnOptions(split=0.2))
    assert (len(train), sorted(test.labels.tolist())) == (7, [0, 1, 2])
    with pytest.raises(InputError, match=r"has a test set of its own; leave `split=0\.2` out"):
        load_data_set(f"npz:{tmp_path / 'both.npz'}", own=OwnOptions(split=0.2))
    with pytest.raises(InputError, match=r"an \.npz is not resized"):
        load_data_set(f"npz:{tmp_path / 'both.npz'}", own=OwnOptions(size=32))


def test_a_class_with_one_image_cant_be_split(folder: Path) -> None:
    picture(folder / "train" / "eel" / "1.png", (0, 0, 0))
    with pytest.raises(InputError, match="class eel has one image, and a split needs two or more"):
        load_data_set(f"folder:{folder / 'train'}", own=OwnOptions(split=0.25))


def test_the_size_can_follow_from_the_images(folder: Path, tmp_path: Path) -> None:
    """Most are 20 x 30."""
    train, _ = load_data_set(f"folder:{folder}", own=OwnOptions(size="auto"))
    assert (train.pixels.shape[2:], train.own.size) == ((16, 16), 16)
    for number in range(20):
        picture(folder / "train" / "dog" / f"large{number}.png", (0, 0, 0), (400, 300))
    assert load_data_set(f"folder:{folder}", own=OwnOptions(size="auto"))[0].own.size == 64
    assert load_data_set(f"folder:{folder}")[0].own.size == 32
    (folder / "train" / "cat" / "0.png").write_text("hello")
    with pytest.raises(InputError, match=r"0\.png: can't be read"):
        load_data_set(f"folder:{folder}", own=OwnOptions(size="auto"))
    np.savez(tmp_path / "a.npz", x_train=np.zeros((4, 9, 9), np.uint8), y_train=np.arange(4) % 2)
    assert load_data_set(f"npz:{tmp_path / 'a.npz'}", own=OwnOptions(size="auto", split=0.5))[0].pixels.shape[2:] == (
        9,
        9,
    )


def test_arrays_of_other_names(folder: Path, tmp_path: Path) -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (6, 8, 8), np.uint8)
    np.savez(tmp_path / "a.npz", pictures=pixels, kinds=np.arange(6) % 2)
    keys = "x_train=pictures, y_train=kinds"
    train, _ = load_data_set(f"npz:{tmp_path / 'a.npz'}", own=OwnOptions(split=0.5, keys=keys))
    assert (len(train) in range(2, 5), train.own.keys) == (True, keys)
    with pytest.raises(InputError, match="given with a folder; it names the arrays of an"):
        load_data_set(f"folder:{folder}", own=OwnOptions(keys=keys))


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (OwnOptions(), "has no test set of its own"),
        (OwnOptions(split=0.5), "class 1 has one image"),
        (OwnOptions(size=32, split=0.5), r"an \.npz is not resized"),
    ],
)
def test_flat_images_of_an_npz_are_refused_before_they_are_unpacked(tmp_path: Path, own: OwnOptions, says: str) -> None:
    pixels = np.zeros((4, 3000, 4000), np.uint8)  # 48 MB, in 47 KB of a file
    np.savez_compressed(tmp_path / "a.npz", x_train=pixels, y_train=[0, 0, 0, 1])
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=says):
            load_data_set(f"npz:{tmp_path / 'a.npz'}", own=own)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
