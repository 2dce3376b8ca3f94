"""Whole-batch augmentation, pixel for pixel against a slow picture-by-picture reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rkcnn.data.augmentation import NONE, Augmentation
from rkcnn.data.images import Images
from rkcnn.data.load import load
from rkcnn.error import InputError

PAPER = {"mnist": Augmentation(padding=4), "cifar": Augmentation(padding=4, flip=True), "svhn": NONE}


def reference(augmentation: Augmentation, picture: Tensor, drawn: list[int], images: Images) -> Tensor:
    """One picture, the way RandomCrop, RandomHorizontalFlip, ToTensor and Normalize define it."""
    top, left, flip, hole_top, hole_left = drawn
    height, width, channels = picture.shape
    p = augmentation.padding
    padded = np.zeros((height + 2 * p, width + 2 * p, channels), np.uint8)
    padded[p : p + height, p : p + width] = picture.numpy()
    out = padded[top : top + height, left : left + width].copy()
    if flip:
        out = out[:, ::-1].copy()
    for y in range(height):
        for x in range(width):
            if 0 <= y - hole_top < augmentation.cutout and 0 <= x - hole_left < augmentation.cutout:
                out[y, x] = 0
    planes = torch.from_numpy(out).permute(2, 0, 1).float() / 255
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (images.mean, images.std))
    return (planes - mean) / std


def made(channels: int, height: int, width: int, seed: int = 0) -> Images:
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (7, height, width, channels), dtype=torch.uint8, generator=generator)
    statistics = (
        (0.49139968, 0.48215841, 0.44653091)[:channels],
        (0.24703223, 0.24348513, 0.26158784)[:channels],
    )
    return Images(
        "made", "train", pixels, torch.zeros(7, dtype=torch.int64), ("a",), *statistics, False, "", ""
    )


def apply(augmentation: Augmentation, images: Images, drawn: Tensor) -> Tensor:
    count = len(drawn)
    mean, std = torch.tensor(images.mean), torch.tensor(images.std)
    return augmentation.apply(images.pixels[:count], drawn, mean, std)


@given(
    st.builds(Augmentation, st.integers(0, 5), st.booleans(), st.integers(0, 9)),
    st.sampled_from([1, 3]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(0, 2**62),
)
@settings(deadline=None, max_examples=150)
def test_any_augmentation_equals_the_reference(
    augmentation: Augmentation, channels: int, height: int, width: int, seed: int
) -> None:
    images = made(channels, height, width)
    drawn = augmentation.draw(seed, 3, torch.arange(7), height, width)
    batch = apply(augmentation, images, drawn)
    for picture, numbers, result in zip(images.pixels, drawn.tolist(), batch, strict=True):
        assert torch.equal(result, reference(augmentation, picture, numbers, images))


@pytest.mark.parametrize("recipe", PAPER)
def test_the_recipes_of_the_paper_on_real_images(recipe: str) -> None:
    train, _ = load("mnist-mini")
    drawn = PAPER[recipe].draw(0, 0, torch.arange(200), 28, 28)
    batch = apply(PAPER[recipe], train, drawn)
    assert batch.is_contiguous()
    assert batch.dtype == torch.float32
    for picture, numbers, result in zip(train.pixels, drawn.tolist(), batch, strict=False):
        assert torch.equal(result, reference(PAPER[recipe], picture, numbers, train))


def test_padding_is_black_before_normalisation() -> None:
    images = made(3, 8, 8)
    drawn = torch.tensor([[0, 0, 0, 0, 0]])
    corner = apply(Augmentation(padding=4), images, drawn)[0, :, 0, 0]
    assert torch.equal(corner, -torch.tensor(images.mean) / torch.tensor(images.std))
    assert (corner != 0).all()


def test_draws_cover_every_crop_both_flips_and_every_hole() -> None:
    drawn = Augmentation(4, True, 16).draw(5, 0, torch.arange(60_000), 32, 32)
    for column, values in enumerate((range(9), range(9), range(2), range(-8, 24), range(-8, 24))):
        counts = torch.bincount(drawn[:, column] - values[0], minlength=len(values))
        expected = 60_000 / len(values)
        assert ((counts - expected).abs() < 5 * expected**0.5).all()


def test_takes_no_branch_on_a_value_so_that_a_compiler_takes_it_in() -> None:
    augmentation, images = Augmentation(4, True, 8), made(3, 32, 32)
    drawn = augmentation.draw(0, 0, torch.arange(7), 32, 32)
    compiled = torch.compile(augmentation.apply, backend="aot_eager", fullgraph=True)
    batch = compiled(images.pixels, drawn, torch.tensor(images.mean), torch.tensor(images.std))
    assert torch.equal(batch, apply(augmentation, images, drawn))


@pytest.mark.parametrize(("padding", "cutout"), [(-1, 0), (0, -1)])
def test_refuses_negative_pixels(padding: int, cutout: int) -> None:
    with pytest.raises(InputError, match="0 pixels or more"):
        Augmentation(padding=padding, cutout=cutout)
