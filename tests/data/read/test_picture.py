"""Pillow's complaints as ours, sizes known before anything is decoded."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from rkcnn.data.read.picture import open_picture
from rkcnn.error import InputError


def saved(kind: str, side: int) -> io.BytesIO:
    file = io.BytesIO()
    Image.fromarray(np.zeros((side, side, 3), np.uint8)).save(file, kind)
    return file


def test_opens_without_decoding() -> None:
    with open_picture(saved("PNG", 30), "here", 10_000, ("PNG",)) as picture:
        assert picture.size == (30, 30)


def test_a_picture_over_the_limit_is_refused() -> None:
    with (
        pytest.raises(InputError, match="claims 100 x 100"),
        open_picture(saved("PNG", 100), "here", 29_999, ("PNG",)),
    ):
        pass


def test_a_format_not_asked_for_is_refused() -> None:
    formats = ("PNG", "JPEG")
    with (
        pytest.raises(InputError, match="can't be read as PNG or JPEG"),
        open_picture(saved("GIF", 9), "here", 10_000, formats),
    ):
        pass


def test_what_goes_wrong_inside_is_ours_too() -> None:
    whole = saved("JPEG", 64).getvalue()
    with (
        pytest.raises(InputError, match="here: can't be read as JPEG"),
        open_picture(io.BytesIO(whole[:-300]), "here", 100_000, ("JPEG",)) as picture,
    ):
        picture.load()
