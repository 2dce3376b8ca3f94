"""Which images a trained network is tested with, and that none of them was trained on."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from digits import write_digits
from rkcnn.data.images import Images
from rkcnn.data.options import OwnOptions
from rkcnn.data.progress import Progress
from rkcnn.error import InputError
from rkcnn.evaluation.metrics import Metrics
from rkcnn.record.result import read_result
from rkcnn.use.evaluate import evaluate
from rkcnn.use.export import export
from rkcnn.use.held_out import is_set_of, label_arrays, load_other_images, was_tested_with
from rkcnn.use.images import load_images
from rkcnn.use.load import load
from rkcnn.use.train import TrainingResult, train
from use.conftest import Arrays

SETTINGS: dict[str, Any] = {"epochs": 1, "batch": 10, "progress": False}
LEAK = "images that the network was trained on would be among the test images"


def add_photos(root: Path, numbers: range) -> str:
    """Pictures of two classes, each with a grey of its own."""
    for number in numbers:
        folder = root / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("L", (12, 12), number).save(folder / f"{number}.png")
    return f"folder:{root}"


def values(images: Images) -> set[int]:
    return set(images.pixels[:, 0, 6, 6].tolist())


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainingResult, str, set[int]]:
    """A run on a folder that has grown since; the folder, and what was trained on."""
    root = tmp_path_factory.mktemp("grown")
    data = add_photos(root / "photos", range(80))
    result = train("ResNet@k=4", data, size=12, split=0.3, out=root / "runs", **SETTINGS)
    training, _ = load_images(data, size=12, split=0.3, progress=False)
    return result, data, values(training)


def test_no_image_of_the_training_is_tested_after_a_folder_has_changed(
    grown: tuple[TrainingResult, str, set[int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, data, trained_on = grown
    assert evaluate(result, data).error == evaluate(result).error == result.error
    assert evaluate(result, split=0.1).images < evaluate(result).images
    for given in (None, data):
        with pytest.raises(
            InputError, match=rf"`split=0\.5` given, .* `split=0\.3`, so that {LEAK}; give at most 0\.3"
        ):
            evaluate(result, given, split=0.5)
    photos = Path(data.partition(":")[2])
    copy = Path(shutil.copytree(photos, tmp_path / "copy"))
    try:
        add_photos(photos, range(80, 120))
        (photos / "a" / "0.png").unlink()
        with pytest.raises(
            InputError,
            match=r"is no longer what the run was tested with, because its files have changed .*; give `data=folder:",
        ):
            evaluate(result)
        images = load_other_images(load(result.folder), data)
        assert not values(images) & trained_on
        assert any(value >= 80 for value in values(images)), "new images are tested too"
        capsys.readouterr()
        assert evaluate(result, data).images == len(images)
        assert (
            "has changed since the run was trained; it is tested with images that it wasn't" in capsys.readouterr().err
        )
        assert not values(load_other_images(load(result.folder), data, own=OwnOptions(split=0.2))) - values(images)
        with pytest.raises(InputError, match=LEAK):
            evaluate(result, data, split=0.5)
        facts = json.loads((result.folder / "result.json").read_text())
        facts["data"]["own"] |= {"split_rule": "content"}  # an image was moved to a class that had none
        folder = Path(shutil.copytree(result.folder, tmp_path / "moved"))
        (folder / "result.json").write_text(json.dumps(facts))
        with pytest.raises(InputError, match=f"has changed since the run was trained, and {LEAK}; put new images"):
            evaluate(folder, data)
    finally:
        shutil.rmtree(photos)
        shutil.copytree(copy, photos)


def test_of_a_copy_of_the_folder_the_training_images_are_left_out(
    grown: tuple[TrainingResult, str, set[int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, data, trained_on = grown
    copy = Path(shutil.copytree(Path(data.partition(":")[2]), tmp_path / "copy"))
    add_photos(copy, range(80, 90))
    found = load_other_images(load(result.folder), f"folder:{copy}", progress=Progress(sys.stderr))
    assert values(found) == set(range(90)) - trained_on
    assert len(found) == 90 - len(trained_on)
    left_out = f"{len(trained_on)} of the 90 images of folder:{copy} are left out, because they are in the training set"
    assert left_out in capsys.readouterr().err
    for path in copy.rglob("*.png"):
        if int(path.stem) not in trained_on:
            path.unlink()
    with pytest.raises(
        InputError, match=f"all {len(trained_on)} images of folder:.* are in the training set of folder:"
    ):
        evaluate(result, f"folder:{copy}")


def test_other_images_are_left_as_they_are(grown: tuple[TrainingResult, str, set[int]], tmp_path: Path) -> None:
    result, _, _ = grown
    assert evaluate(result, add_photos(tmp_path / "others", range(100, 120))).images == 20


def test_a_folder_that_lost_its_test_set_is_refused(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    data = add_photos(photos / "train", range(40))
    add_photos(photos / "test", range(40, 50))
    result = train("ResNet@k=4", f"folder:{photos}", size=12, out=tmp_path / "runs", **SETTINGS)
    shutil.rmtree(photos / "test")
    for name in "ab":
        (photos / "train" / name).rename(photos / name)
    (photos / "train").rmdir()
    with pytest.raises(InputError, match="has no test set of its own"):
        evaluate(result, f"folder:{photos}")
    with pytest.raises(InputError, match=f"had a test set of its own when the run was trained, and {LEAK}"):
        evaluate(result, f"folder:{photos}", split=0.2)
    assert data


def test_arrays_are_split_as_they_were(tmp_path: Path, arrays: Arrays) -> None:
    x, y = arrays[0]
    result = train("ResNet@k=4", (x, y), split=0.2, out=tmp_path, **SETTINGS)
    test = load_images((x, y), split=0.2)[1]
    found = evaluate(result, (x, y))
    assert (found.images, found.error) == (len(test), result.error)
    assert result.run.data == f"{test.name}~split-0.2"
    assert evaluate(result, (x, y), split=0.2) == found
    assert evaluate(result, (x, y), split=0.1).images < found.images
    with pytest.raises(InputError, match=rf"`split=0\.5` given, which is not the share .* {LEAK}"):
        evaluate(result, (x, y), split=0.5)
    training = load_images((x, y), split=0.2)[0]
    with pytest.raises(InputError, match=r"data=\(x, y\) are the images that the network was trained on"):
        evaluate(result, (training.pixels, training.labels))
    others = arrays[1]
    assert evaluate(result, others).images == len(others[1])
    assert evaluate(result, others, split=0.5).images < len(others[1])
    assert (
        label_arrays(load(result.folder), (test.pixels, test.labels.numpy()), None).pixels_sha256 == test.pixels_sha256
    )
    with pytest.raises(InputError, match=r"`size=8` given with images that are not resized; leave it out"):
        evaluate(result, others, size=8)
    with pytest.raises(InputError, match=r"`split=0\.5` given with Images"):
        evaluate(result, test, split=0.5)


def test_exported_weights_know_what_they_were_trained_on(
    grown: tuple[TrainingResult, str, set[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, data, _ = grown
    path = export(result, output=tmp_path / "m.safetensors").path
    record = load(path).result
    assert record is not None
    assert record.run.data == "folder:photos~size-12~split-0.3"
    found: Metrics = evaluate(path, data)
    assert (found.error, found.images) == (result.error, evaluate(result).images)
    with pytest.raises(InputError, match=LEAK):
        evaluate(path, data, split=0.5)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError, match=r"trained on folder:photos, which is not here; say where, as in `data=folder:"
    ):
        evaluate(path)
    monkeypatch.chdir(Path(data.partition(":")[2]).parent)
    assert evaluate(path).error == result.error


def test_without_data_a_run_is_tested_with_its_own(tmp_path: Path) -> None:
    data = write_digits(tmp_path / "mine.npz", 100, 40)
    settings: dict[str, Any] = {"epochs": 1, "batch": 50, "out": tmp_path / "runs", "progress": False}
    result = train("ResNet@k=4", data, **settings)
    assert evaluate(result).error == result.error
    held = train("ResNet@k=4", data, validation=20, **settings)
    assert evaluate(held).images == 20
    assert evaluate(held).error == held.error
    assert evaluate(result, data).error == result.error

    pixels = np.random.RandomState(0).randint(0, 256, (60, 28, 28), np.uint8)
    np.savez(tmp_path / "one.npz", x_train=pixels, y_train=np.arange(60) % 2)
    split = train("ResNet@k=4", f"npz:{tmp_path / 'one.npz'}", split=0.5, **{**settings, "batch": 10})
    assert evaluate(split).images == len(
        load_images(split.run.data_set, split=0.5)[1]
    )  # the record remembers the split

    write_digits(tmp_path / "mine.npz", 100, 41)
    with pytest.raises(InputError, match=r"mine\.npz is no longer what the run was tested with"):
        evaluate(result)
    assert evaluate(result, data).images == 41


def test_an_option_that_is_given_leaves_the_others_as_recorded(tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / "photos" / "ab"[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("L", (20, 20), 10 * number).save(folder / f"{number}.png")
    (tmp_path / "photos" / "a" / "bad.png").write_bytes(b"bad")
    data = f"folder:{tmp_path / 'photos'}"
    result = train(
        "ResNet@k=4", data, size=24, split=0.5, skip_bad=True, epochs=1, batch=5, out=tmp_path / "runs", progress=False
    )
    for options in ({}, {"size": 24}, {"split": 0.5}, {"skip_bad": True}):
        assert evaluate(result, **options).error == result.error
    assert evaluate(result, data).error == result.error
    with pytest.raises(InputError, match="is no longer what the run was tested with"):
        evaluate(result, size=28)
    other = (tmp_path / "photos").rename(tmp_path / "others")
    assert evaluate(result, f"folder:{other}").error == result.error, "its images are recognised where they are now"
    Image.new("L", (20, 20), 255).save(other / "a" / "20.png")
    (other / "a" / "bad.png").unlink()
    assert evaluate(result, f"folder:{other}").images == 21, "all of another folder, in the size of the network"
    assert evaluate(result, f"folder:{tmp_path / 'others' / '..' / 'others'}").images == 21
    assert evaluate(result, f"folder:{other}", split=0.4).images < 21


def test_other_images_are_read_as_the_network_takes_them(
    trained: TrainingResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "07":  # two of its ten classes, one image of the last, in colours
        (tmp_path / "some" / name).mkdir(parents=True)
        for number in range(1 if name == "7" else 3):
            Image.new("RGB", (20, 20), (200, 10 * number, 0)).save(tmp_path / "some" / name / f"{number}.png")
    found = evaluate(trained, f"folder:{tmp_path / 'some'}")
    assert [sum(row) for row in found.confusion] == [3, 0, 0, 0, 0, 0, 0, 1, 0, 0]
    assert "some has no test set of its own: all of its 4 images are test images" in capsys.readouterr().err


def test_a_record_without_channels_keeps_its_meaning(tmp_path: Path) -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (20, 12, 12, 1), np.uint8)
    np.savez(tmp_path / "grey.npz", x_train=pixels.repeat(3, 3), y_train=np.arange(20) % 2)
    data, settings = f"npz:{tmp_path / 'grey.npz'}", {"split": 0.5, "epochs": 1, "batch": 5, "progress": False}
    result = train("ResNet@k=4", data, channels=3, out=tmp_path / "runs", **settings)  # type: ignore[call-overload]
    facts = json.loads((result.folder / "result.json").read_text())
    del facts["data"]["own"]["channels"]
    facts["run"]["data"] = f"{data}~split-0.5"
    (result.folder / "result.json").write_text(json.dumps(facts))
    assert evaluate(result.folder).error == result.error
    assert evaluate(result.folder, data).error == result.error


def test_images_are_told_by_their_checksum(trained: TrainingResult, arrays: Arrays) -> None:
    record = read_result(trained.folder / "result.json")
    training, test = load_images(arrays)
    assert was_tested_with(record, test)
    assert not was_tested_with(record, training)
    assert not was_tested_with(record, replace(test, labels_sha256=training.labels_sha256))
    assert was_tested_with(replace(record, data={}), training)  # an old record without checksums


def test_a_set_is_told_by_its_name(trained: TrainingResult, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    record = read_result(trained.folder / "result.json")
    for data, name, same in (
        ("mnist", "mnist", True),
        ("mnist~validation-20", "mnist", True),
        ("folder:~/photos~size-32", "folder:~/photos", True),
        ("mnist-mini", "mnist", False),
        ("mnist", "mnist~validation-20", False),
        (f"folder:{tmp_path}/photos~size-32", f"folder:{tmp_path}/photos/../photos/", True),
        (f"folder:{tmp_path}/photos~size-32", f"folder:{tmp_path}", False),
        (f"folder:{tmp_path}/photos~size-32", "folder:a\0b", False),
    ):
        assert is_set_of(replace(record, run=replace(record.run, data=data)), name) is same
