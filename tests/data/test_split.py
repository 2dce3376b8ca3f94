"""Which images are test images, by the content of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.data.options import BELOW_SHARE, BY_CONTENT, BY_CONTENT_ALONE, OwnOptions, SplitOptions
from rkcnn.data.split import check_split, choose_share, divide, place_files, place_images
from rkcnn.error import InputError


@given(st.integers(0, 10_000), st.floats(0.01, 0.99), st.integers(4, 60))
def test_an_image_more_moves_no_other(seed: int, share: float, count: int) -> None:
    """But for an image that was moved to a side of which its class had none."""
    labels, places = np.arange(count + 1) % 2, np.random.RandomState(seed).rand(count + 1)
    before = choose_share(labels[:count], "ab", share, "here", places[:count])
    after = choose_share(labels, "ab", share, "here", places)[:count]
    for label in (0, 1):
        mine = labels[:count] == label
        below = places[:count][mine] < share
        assert 0 < before[mine].sum() < len(below)
        if 0 < below.sum() < len(below):
            assert (before[mine] == below).all()
            assert (after[mine] == below).all()


def test_the_share_is_right_on_average() -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (4000, 4, 4, 3), np.uint8)
    in_test = choose_share(np.arange(4000) % 4, "abcd", 0.2, "here", place_images(pixels))
    assert 0.18 < in_test.mean() < 0.22
    less = choose_share(np.arange(4000) % 4, "abcd", 0.1, "here", place_images(pixels))
    assert not (less & ~in_test).any(), "a smaller share takes some of the same images"


def test_identical_images_are_on_one_side() -> None:
    places = np.array([0.9, 0.3, 0.3, 0.8, 0.5, 0.5, 0.5])
    labels = np.array([0, 0, 0, 0, 1, 1, 1])
    in_test = choose_share(labels, "ab", 0.2, "here", places)
    assert in_test.tolist() == [False, True, True, False, True, False, False], "a class of copies has to be divided"
    assert choose_share(labels, "ab", 0.95, "here", places)[:4].tolist() == [False, True, True, True]


def test_the_rule_says_whether_the_share_alone_chose() -> None:
    labels = np.array([0, 0, 1, 1])

    def rule(places: list[float], own: OwnOptions) -> tuple[list[bool], str]:
        parts, found = divide(labels, "ab", own, "here", lambda: np.array(places))
        return parts["test"].tolist(), found

    own = OwnOptions(split=0.5)
    assert rule([0.1, 0.9, 0.6, 0.7], own) == ([True, False, True, False], BY_CONTENT_ALONE)
    assert rule([0.1, 0.2, 0.6, 0.3], own) == ([True, False, False, True], BY_CONTENT)
    below = SplitOptions(split=0.5, split_rule=BELOW_SHARE)
    assert rule([0.1, 0.2, 0.6, 0.7], below) == ([True, True, False, False], BELOW_SHARE)
    with pytest.raises(InputError, match=r"none of its images is below the share 0\.5"):
        rule([0.6, 0.7, 0.8, 0.9], below)
    assert rule([0.1, 0.9, 0.6, 0.7], SplitOptions(split=0.5, split_rule=BY_CONTENT_ALONE))[1] == BY_CONTENT_ALONE


def test_files_have_places_by_their_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "abcde"]
    for path, content in zip(paths, (b"one", b"one", b"two", b"long" * 9), strict=False):
        path.write_bytes(content)
    one, again, two, long, missing = place_files(paths, 10)
    assert one == again != two
    assert long == missing == 1


@pytest.mark.parametrize("share", [0, 1, -0.2, float("nan"), "0.2"])
def test_what_is_no_share(share: float) -> None:
    with pytest.raises(InputError, match=r"must be a share between 0 and 1, say `split=0\.2`") as refused:
        check_split(share, "here")
    assert f"`split={share!r}`" in str(refused.value)
