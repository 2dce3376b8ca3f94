"""Images: refuses what doesn't fit together; the validation split is one fixed partition."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.error import InputError


def make(count: int) -> Images:
    pixels = torch.arange(count).remainder(251).to(torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 2, 3)
    labels = torch.arange(count).remainder(4)
    return Images("made", "train", pixels, labels, ("a", "b", "c", "d"), (0.0,), (1.0,), False, "", "")


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("pixels", torch.zeros(5, 1, 2, 3), "uint8"),
        ("pixels", torch.zeros(5, 2, 3, dtype=torch.uint8), "uint8"),
        ("pixels", torch.zeros(0, 1, 2, 3, dtype=torch.uint8), "none of them 0"),
        ("pixels", torch.zeros(4, 1, 2, 3, dtype=torch.uint8), "4 images need"),
        ("labels", torch.full((5,), 4), "must be 0 to 3"),
        ("labels", torch.full((5,), -1), "must be 0 to 3"),
        ("labels", torch.zeros(5, dtype=torch.uint8), "int64"),
        ("mean", (0.0, 0.0), "1 means"),
        ("std", (0.0,), "above 0"),
    ],
)
def test_refuses_parts_that_do_not_fit(field: str, value: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        replace(make(5), **{field: value})  # type: ignore[arg-type]


@given(st.data())
@settings(deadline=None)
def test_split_is_a_partition_and_the_same_every_time(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 200))
    held = data.draw(st.integers(1, count - 1))
    images = make(count)
    rest, validation = images.split(held)
    assert len(validation) == held
    both = torch.cat([rest.pixels, validation.pixels])[:, 0, 0, 0].sort().values
    assert torch.equal(both, images.pixels[:, 0, 0, 0].sort().values)
    assert torch.equal(validation.pixels, images.split(held)[1].pixels)


def test_split_of_real_images_never_changes() -> None:
    train, _ = load_data_set("mnist-mini")
    rest, validation = train.split(5000)
    assert (rest.part, validation.part) == ("train without validation 5000", "validation 5000 of train")
    assert validation.labels[:12].tolist() == [5, 4, 9, 2, 1, 1, 4, 3, 3, 4, 9, 1]
    assert torch.bincount(validation.labels).tolist() == [469, 581, 504, 545, 472, 417, 502, 538, 484, 488]


@pytest.mark.parametrize("held", [0, -1, 5, 6, 2.5, True, "2"])
def test_split_refuses_all_or_none(held: int) -> None:
    with pytest.raises(InputError, match="give 1 to 4"):
        make(5).split(held)


@pytest.mark.parametrize("count", [0, -1, 6, 2.5, True, None, "2"])
def test_choose_refuses_what_is_no_part(count: int) -> None:
    with pytest.raises(
        InputError, match=f"made: {count!r} of 5 images can't be chosen; give a whole number from 1 to 5"
    ):
        make(5).choose(count)


def test_choose_can_take_all() -> None:
    assert torch.equal(make(5).choose(5).pixels, make(5).pixels)


def test_a_part_cant_be_checked() -> None:
    train, _ = load_data_set("mnist-mini")
    for part in (*train.split(5000), train.choose(10)):
        with pytest.raises(InputError, match="is a part of a set, and checksums are known of complete sets alone"):
            part.check()


def test_check_sees_a_changed_pixel_and_a_changed_label() -> None:
    train, _ = load_data_set("mnist-mini")
    train.check()
    train.pixels[17, 0, 3, 3] ^= 1
    with pytest.raises(InputError, match="pixels have changed"):
        train.check()
    train, _ = load_data_set("mnist-mini")
    train.labels[17] = (train.labels[17] + 1) % 10
    with pytest.raises(InputError, match="labels have changed"):
        train.check()


def test_origin_says_what_is_known_of_the_content() -> None:
    train, _ = load_data_set("mnist-mini")
    assert train.origin == "verified"
    assert replace(train, verified=False).origin == "unverified"
    assert replace(train, verified=False, name="folder:photos").origin == "your own images"
    assert make(5).origin == "your own images"


def test_they_are_shown_in_one_line() -> None:
    assert repr(make(1200)) == "<Images: made (train), 1,200 of 2 x 3 x 1, 4 classes, your own images>"
