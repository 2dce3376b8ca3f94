"""Ink on paper: what is taken for it, and what becomes of it."""

from __future__ import annotations

import numpy as np
from PIL import Image

from rkcnn.data.load import load_data_set
from rkcnn.data.paper import find_ink, is_light_paper


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
