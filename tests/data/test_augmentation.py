"""Random choices, and augmentation by them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rkcnn.data.augmentation import NONE, ORDER, TOP, Augmentation, permutation, random_integers
from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.data.sets import SETS
from rkcnn.error import InputError

CPU = torch.device("cpu")
SEEDS = st.integers(-(2**63), 2**63 - 1)


def _mix(z: int) -> int:
    """Steele, Lea and Flood 2014, in whole numbers."""
    mask = 2**64 - 1
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


@given(SEEDS, st.integers(0, 10_000), st.integers(0, 5), st.integers(0, 10**6))
def test_draw_is_splitmix64_of_its_arguments(seed: int, epoch: int, stream: int, position: int) -> None:
    mask, golden = 2**64 - 1, 0x9E3779B97F4A7C15
    state = 0
    for word in (seed, epoch, stream):
        state = _mix((state + word + golden) & mask)
    expected = _mix((position * golden + state) & mask) & (2**63 - 1)
    assert random_integers(seed, epoch, stream, torch.tensor([position])).item() == expected


@given(SEEDS, st.integers(0, 10_000), st.integers(1, 500))
def test_order_is_a_permutation_and_a_function_of_seed_and_epoch(seed: int, epoch: int, count: int) -> None:
    first = permutation(seed, epoch, count, CPU)
    assert first.sort().values.tolist() == list(range(count))
    assert torch.equal(first, permutation(seed, epoch, count, CPU))


def test_orders_of_other_seeds_and_epochs_differ() -> None:
    orders = {tuple(permutation(seed, epoch, 50, CPU).tolist()) for seed in range(10) for epoch in range(10)}
    assert len(orders) == 100


def test_order_never_changes_between_versions() -> None:
    """A published result is repeated only as long as these numbers stay."""
    assert permutation(7, 3, 10, CPU).tolist() == [2, 7, 8, 4, 0, 5, 6, 9, 1, 3]
    assert (random_integers(7, 3, TOP, torch.arange(12)) % 9).tolist() == [7, 7, 7, 6, 8, 0, 8, 8, 8, 7, 4, 6]


def test_draws_are_uniform_and_streams_independent() -> None:
    positions = torch.arange(90_000)
    top, other = random_integers(1, 2, TOP, positions) % 9, random_integers(1, 2, ORDER, positions) % 9
    joint = torch.bincount(top * 9 + other, minlength=81).double()
    expected = 90_000 / 81
    chi_squared = float(((joint - expected) ** 2 / expected).sum())
    assert chi_squared < 140  # 80 degrees of freedom: above this once in 20,000


PAPER = {"mnist": Augmentation(padding=4), "cifar": Augmentation(padding=4, flip=True), "svhn": NONE}


def reference(augmentation: Augmentation, picture: Tensor, choices: list[int], images: Images) -> Tensor:
    """One picture, the way RandomCrop, RandomHorizontalFlip and Normalize define it, in plain numpy."""
    top, left, flip, hole_top, hole_left = choices[:5]
    channels, height, width = picture.shape
    p = augmentation.padding
    padded = np.zeros((channels, height + 2 * p, width + 2 * p), np.uint8)
    padded[:, p : p + height, p : p + width] = picture.numpy()
    out = padded[:, top : top + height, left : left + width].copy()
    if flip:
        out = out[:, :, ::-1].copy()
    for y in range(height):
        for x in range(width):
            if 0 <= y - hole_top < augmentation.cutout and 0 <= x - hole_left < augmentation.cutout:
                out[:, y, x] = 0
    shift, scale = images.normalisation()
    return (torch.from_numpy(out).float() - shift) * scale


def made(channels: int, height: int, width: int, seed: int = 0) -> Images:
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (7, channels, height, width), dtype=torch.uint8, generator=generator)
    statistics = (
        (0.49139968, 0.48215841, 0.44653091)[:channels],
        (0.24703223, 0.24348513, 0.26158784)[:channels],
    )
    return Images("made", "train", pixels, torch.zeros(7, dtype=torch.int64), ("a",), *statistics, False, "", "")


def apply(augmentation: Augmentation, images: Images, choices: Tensor) -> Tensor:
    count = len(choices)
    return augmentation.apply(images.pixels[:count], choices, *images.normalisation())


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
    choices = augmentation.choose(seed, 3, torch.arange(7), height, width)
    batch = apply(augmentation, images, choices)
    for picture, numbers, result in zip(images.pixels, choices.tolist(), batch, strict=True):
        assert torch.equal(result, reference(augmentation, picture, numbers, images))


@pytest.mark.parametrize("recipe", PAPER)
def test_the_recipes_of_the_paper_on_real_images(recipe: str) -> None:
    train, _ = load_data_set("mnist-mini")
    choices = PAPER[recipe].choose(0, 0, torch.arange(200), 28, 28)
    batch = apply(PAPER[recipe], train, choices)
    assert batch.is_contiguous()
    assert batch.dtype == torch.float32
    for picture, numbers, result in zip(train.pixels, choices.tolist(), batch, strict=False):
        assert torch.equal(result, reference(PAPER[recipe], picture, numbers, train))


def test_normalisation_is_that_of_to_tensor_and_normalize() -> None:
    """To 1e-6, for every pixel value there is and the statistics of every set."""
    for data in SETS.values():
        values = torch.arange(256, dtype=torch.uint8).view(256, 1, 1, 1).expand(256, data.shape[2], 1, 1)
        labels = torch.zeros(256, dtype=torch.int64)
        images = Images(data.name, "all", values, labels, data.classes, data.mean, data.std, False, "", "")
        batch = NONE.apply(values, torch.zeros(256, 5, dtype=torch.int64), *images.normalisation())
        mean, std = (torch.tensor(numbers).view(-1, 1, 1) for numbers in (data.mean, data.std))
        assert torch.allclose(batch, (values.float() / 255 - mean) / std, rtol=0, atol=1e-6)


def test_padding_is_black_before_normalisation() -> None:
    images = made(3, 8, 8)
    choices = torch.tensor([[0, 0, 0, 0, 0]])
    corner = apply(Augmentation(padding=4), images, choices)[0, :, 0, 0]
    assert torch.allclose(corner, -torch.tensor(images.mean) / torch.tensor(images.std), rtol=0, atol=1e-6)
    assert (corner != 0).all()


def test_draws_cover_every_crop_both_flips_and_every_hole() -> None:
    choices = Augmentation(4, True, 16).choose(5, 0, torch.arange(60_000), 32, 32)
    for column, values in enumerate((range(9), range(9), range(2), range(-8, 24), range(-8, 24))):
        counts = torch.bincount(choices[:, column] - values[0], minlength=len(values))
        expected = 60_000 / len(values)
        assert ((counts - expected).abs() < 5 * expected**0.5).all()


def test_takes_no_branch_on_a_value_so_that_a_compiler_takes_it_in() -> None:
    augmentation, images = Augmentation(4, True, 8), made(3, 32, 32)
    choices = augmentation.choose(0, 0, torch.arange(7), 32, 32)
    compiled = torch.compile(augmentation.apply, backend="aot_eager", fullgraph=True)
    batch = compiled(images.pixels, choices, *images.normalisation())
    assert torch.equal(batch, apply(augmentation, images, choices))


@pytest.mark.parametrize(("padding", "cutout"), [(-1, 0), (0, -1)])
def test_refuses_negative_pixels(padding: int, cutout: int) -> None:
    with pytest.raises(InputError, match="0 pixels or more"):
        Augmentation(padding=padding, cutout=cutout)


def test_refuses_a_flip_that_is_no_switch() -> None:
    with pytest.raises(InputError, match="flip 2 must be True or False"):
        Augmentation(flip=2)  # type: ignore[arg-type]


def test_the_layout_in_memory_makes_no_difference() -> None:
    augmentation, images = Augmentation(4, True, 8), made(3, 32, 32)
    choices = augmentation.choose(0, 0, torch.arange(7), 32, 32)
    pixels = images.pixels.contiguous(memory_format=torch.channels_last)
    batch = augmentation.apply(pixels, choices, *images.normalisation())
    assert torch.equal(batch, apply(augmentation, images, choices))


@given(
    st.builds(Augmentation, st.integers(0, 5), st.booleans(), st.integers(0, 9), st.sampled_from([0.3, 1.0])),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(0, 2**62),
)
@settings(deadline=None, max_examples=100)
def test_cutmix_equals_the_reference(augmentation: Augmentation, height: int, width: int, seed: int) -> None:
    """Both images are cropped and flipped alike, the rectangle is taken from the other, and the square comes last."""
    images = made(3, height, width)
    order = torch.arange(7).flip(0)
    choices = augmentation.choose(seed, 3, torch.arange(7), height, width)
    pixels = torch.cat([images.pixels, images.pixels[order]])
    batch = augmentation.apply(pixels, choices, *images.normalisation())
    shares = augmentation.share_of_other(choices, height, width)
    whole = Augmentation(augmentation.padding, augmentation.flip)
    for number, (numbers, result) in enumerate(zip(choices.tolist(), batch, strict=True)):
        own, other = (reference(whole, images.pixels[n], numbers, images) for n in (number, int(order[number])))
        top, bottom, left, right = numbers[5:]
        assert 0 <= top <= bottom <= height
        assert 0 <= left <= right <= width
        assert float(shares[number]) == pytest.approx((bottom - top) * (right - left) / (height * width))
        own[:, top:bottom, left:right] = other[:, top:bottom, left:right]
        for y in range(height):
            for x in range(width):
                if 0 <= y - numbers[3] < augmentation.cutout and 0 <= x - numbers[4] < augmentation.cutout:
                    own[:, y, x] = reference(whole, torch.zeros_like(images.pixels[0]), numbers, images)[:, y, x]
        assert torch.equal(result, own)


def test_cutmix_mixes_as_often_and_as_much_as_it_should() -> None:
    """The share is uniform from 0 to 1, less what crosses the edge.

    A side sqrt(u) whose centre is uniform keeps sqrt(u) - u / 4 of itself inside, so the mean area is the integral of
    (sqrt(u) - u / 4)^2 = 1/2 - 1/5 + 1/48 = 0.3208.
    """
    augmentation = Augmentation(cutmix=0.5)
    shares = augmentation.share_of_other(augmentation.choose(0, 0, torch.arange(40_000), 320, 320), 320, 320)
    assert float((shares > 0).float().mean()) == pytest.approx(0.5, abs=0.01)
    assert float(shares[shares > 0].mean()) == pytest.approx(0.3208, abs=0.01)


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_cutmix_that_is_no_probability(probability: float) -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        Augmentation(cutmix=probability)
