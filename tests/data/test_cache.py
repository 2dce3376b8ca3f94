"""Decoded once, opened at once, and never half-written."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rkcnn.data import cache
from rkcnn.data.read.labelled_pixels import LabelledPixels
from rkcnn.data.sets import Content, DataSet
from rkcnn.error import InputError

PIXELS = np.random.RandomState(0).randint(0, 256, (9000, 4, 5, 3), np.uint8)
LABELS = np.arange(9000) % 3


def parts() -> Iterator[tuple[str, LabelledPixels]]:
    yield "train", LabelledPixels("one", PIXELS[:5000], LABELS[:5000], LABELS[:5000] % 2)
    yield "test", LabelledPixels("two", PIXELS[:10], LABELS[:10], LABELS[:10] % 2)
    yield (
        "train",
        LabelledPixels(
            "three",
            PIXELS[5000:].transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3),
            LABELS[5000:],
            LABELS[5000:] % 2,
        ),
    )


def kept(root: Path) -> Path:
    folder, description = cache.write_parts(root, "me", parts(), ["a", "b", "c"], "here")
    cache.move_into_place(folder, description, root / "set")
    return root / "set"


def test_what_is_written_is_what_opens(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    description = cache.read_description(folder)
    assert description is not None
    train = description.parts["train"]
    pixels, labels = cache.open_part(folder, "train", train.shape, coarse=False)
    assert (pixels == PIXELS.transpose(0, 3, 1, 2)).all()
    assert (labels == LABELS).all()
    assert (cache.open_part(folder, "train", train.shape, coarse=True)[1] == LABELS % 2).all()
    assert train.mean == pytest.approx((PIXELS / 255).mean((0, 1, 2)).tolist())
    assert train.std == pytest.approx((PIXELS / 255).std((0, 1, 2)).tolist())


def test_writing_to_an_open_set_never_reaches_the_file(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    pixels, _ = cache.open_part(folder, "test", [10, 4, 5, 3], coarse=False)
    pixels[:] = 0
    assert (cache.open_part(folder, "test", [10, 4, 5, 3], coarse=False)[0] == PIXELS[:10].transpose(0, 3, 1, 2)).all()


def test_a_newer_set_takes_the_older_ones_place(tmp_path: Path) -> None:
    kept(tmp_path)
    kept(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


@pytest.mark.parametrize("error", [InputError("bad"), KeyboardInterrupt(), OSError(28, "full")])
def test_a_failure_in_the_middle_leaves_nothing(error: BaseException, tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[str, LabelledPixels]]:
        yield from parts()
        raise error

    with pytest.raises(type(error)):
        cache.write_parts(tmp_path, "me", broken(), ["a", "b", "c"], "here")
    assert list(tmp_path.iterdir()) == []


def test_refuses_labels_out_of_range_and_pictures_of_another_size(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="labels run from 0 to 2, and must be 0 to 1"):
        cache.write_parts(tmp_path, "me", parts(), ["a", "b"], "here")
    other = [("train", LabelledPixels("one", PIXELS, LABELS)), ("train", LabelledPixels("two", PIXELS[:, :3], LABELS))]
    with pytest.raises(InputError, match="two: images are"):
        cache.write_parts(tmp_path, "me", other, ["a", "b", "c"], "here")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["no json", "cut", "other format", "other fields", "missing"])
def test_a_damaged_set_counts_as_absent(damage: str, tmp_path: Path) -> None:
    folder = kept(tmp_path)
    content = json.loads((folder / "set.json").read_text())
    if damage == "no json":
        (folder / "set.json").write_text("{")
    elif damage == "cut":
        (folder / "train.pixels").write_bytes(b"short")
    elif damage == "missing":
        (folder / "test.pixels").unlink()
    else:
        content.update({"format": 99} if damage == "other format" else {"unknown": 1})
        (folder / "set.json").write_text(json.dumps(content))
    assert cache.read_description(folder) is None


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "null", "7", '{"format": 1}', '{"format": 1, "parts": null}', "[" * 100_000),
        '{"format": 1, "parts": {}, "classes": [], "verified": true, "source": ""}',
    ],
)
def test_any_description_that_is_not_one_counts_as_absent(text: str, tmp_path: Path) -> None:
    folder = kept(tmp_path)
    (folder / "set.json").write_text(text)
    assert cache.read_description(folder) is None


@pytest.mark.parametrize("shape", [None, [], "9000", [9000, 4, 5], [-9000, 4, -5, 3], [9000.0, 4, 5, 3]])
def test_a_part_without_a_shape_counts_as_absent(shape: object, tmp_path: Path) -> None:
    folder = kept(tmp_path)
    content = json.loads((folder / "set.json").read_text())
    content["parts"]["train"]["shape"] = shape
    (folder / "set.json").write_text(json.dumps(content))
    assert cache.read_description(folder) is None


@pytest.mark.parametrize("name", ["train.labels", "test.labels", "train.coarse"])
@pytest.mark.parametrize("content", [None, b"", b"12345678"])
def test_missing_or_short_labels_count_as_absent(name: str, content: bytes | None, tmp_path: Path) -> None:
    folder = kept(tmp_path)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    assert cache.read_description(folder) is None


@pytest.mark.parametrize("mean", [None, [], [0.1], ["a", "b", "c"], [0.1, 0.2, float("nan")]])
def test_a_part_without_statistics_counts_as_absent(mean: object, tmp_path: Path) -> None:
    folder = kept(tmp_path)
    content = json.loads((folder / "set.json").read_text())
    content["parts"]["train"]["mean"] = mean
    (folder / "set.json").write_text(json.dumps(content))
    assert cache.read_description(folder) is None


def test_test_labels_come_from_the_first_verified_copy(tmp_path: Path) -> None:
    none, one, two = (tmp_path / name for name in ("none", "one", "two"))
    (one / "decoded").mkdir(parents=True)
    (two / "decoded").mkdir(parents=True)
    for root in (one, two):
        folder, description = cache.write_parts(root / "decoded", "me", parts(), ["a", "b", "c"], "here")
        description.verified = root == two
        cache.move_into_place(folder, description, root / "decoded" / "small")
    train, test = (Content(part.shape[0], part.pixels, part.labels) for part in description.parts.values())
    data = DataSet("small", train, test, (4, 5, 3), ("a", "b", "c"), (0.0,) * 3, (1.0,) * 3, "small", "small")
    found = cache.read_test_labels(data, [none, one, two])
    assert found is not None
    assert (found == LABELS[:10]).all()
    coarse = cache.read_test_labels(replace(data, coarse=True), [two])
    assert coarse is not None
    assert (coarse == LABELS[:10] % 2).all()
    assert cache.read_test_labels(data, [none, one]) is None
    assert cache.read_test_labels(replace(data, train=replace(train, labels="0" * 64)), [two]) is None
    assert cache.list_differences(replace(data, test=Content(9)), description) == ["test shape [10, 4, 5, 3]"]


@pytest.mark.parametrize("file", ["train.pixels", "test.pixels", "train.labels", "test.coarse"])
def test_changed_content_is_noticed(file: str, tmp_path: Path) -> None:
    folder = kept(tmp_path)
    content = bytearray((folder / file).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / file).write_bytes(content)
    description = cache.read_description(folder)
    assert description is not None
    says = rf"^{folder}: its {file.partition('.')[0]} images or labels have changed since they were decoded$"
    assert re.match(says, cache.find_damage(folder, description))


def test_pixels_changed_with_intent_are_noticed(tmp_path: Path) -> None:
    """An earlier version compared by a CRC-32 in set.json, which whoever changes the pixels can change too."""
    folder = kept(tmp_path)
    pixels = bytes(len((folder / "train.pixels").read_bytes()))
    (folder / "train.pixels").write_bytes(pixels)
    content = json.loads((folder / "set.json").read_text())
    content["parts"]["train"]["crc32"] = {"pixels": zlib.crc32(pixels)}
    (folder / "set.json").write_text(json.dumps(content))
    description = cache.read_description(folder)
    assert description is not None
    assert "train images or labels have changed" in cache.find_damage(folder, description)


def test_more_images_than_are_hashed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rkcnn.data.cache._HASHED", 3)
    folder = kept(tmp_path)
    description = cache.read_description(folder)
    assert description is not None
    assert cache.find_damage(folder, description) == ""


def test_changed_test_labels_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "decoded").mkdir()
    folder, description = cache.write_parts(tmp_path / "decoded", "me", parts(), ["a", "b", "c"], "here")
    description.verified = True
    cache.move_into_place(folder, description, tmp_path / "decoded" / "small")
    train, test = (Content(part.shape[0], part.pixels, part.labels) for part in description.parts.values())
    data = DataSet("small", train, test, (4, 5, 3), ("a", "b", "c"), (0.0,) * 3, (1.0,) * 3, "small", "small")
    assert cache.read_test_labels(data, [tmp_path]) is not None
    (tmp_path / "decoded" / "small" / "test.labels").write_bytes(bytes(80))
    assert cache.read_test_labels(data, [tmp_path]) is None


@pytest.mark.parametrize("change", [{"classes": "abc"}, {"classes": [1, 2, 3]}, {"source": None}])
def test_a_description_of_other_kinds_counts_as_absent(change: dict[str, object], tmp_path: Path) -> None:
    folder = kept(tmp_path)
    content = json.loads((folder / "set.json").read_text())
    (folder / "set.json").write_text(json.dumps(content | change))
    assert cache.read_description(folder) is None
    content["parts"]["train"] = [1, 2]
    (folder / "set.json").write_text(json.dumps(content))
    assert cache.read_description(folder) is None


def test_a_pipe_is_no_description(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    (folder / "set.json").unlink()
    os.mkfifo(folder / "set.json")
    assert cache.read_description(folder) is None
