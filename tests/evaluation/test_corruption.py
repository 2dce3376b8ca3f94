"""Corrupted images: what each kind does, and that it is always the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from scipy.ndimage import gaussian_filter

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.error import InputError
from rkcnn.evaluation.corruption import BLUR, CONTRAST, CORRUPTIONS, GRADES, NOISE, corrupt


@pytest.fixture(scope="module")
def images() -> Images:
    test = load_data_set("mnist-mini")[1]
    return replace(test, pixels=test.pixels[:1200], labels=test.labels[:1200])


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_each_grade_is_stronger_and_always_the_same(images: Images, kind: str) -> None:
    before = images.pixels.clone()
    distances = []
    for grade in GRADES:
        changed = corrupt(images, kind, grade)
        assert torch.equal(changed.pixels, corrupt(images, kind, grade).pixels)
        assert changed.part == f"test, {kind} {grade}"
        distances.append(float((changed.pixels.float() - images.pixels.float()).abs().mean()))
    assert sorted(set(distances)) == distances
    assert torch.equal(images.pixels, before)


def test_noise_has_its_deviation(images: Images) -> None:
    flat = replace(images, pixels=torch.full_like(images.pixels, 128))
    for grade in GRADES[:3]:  # stronger noise is cut at black and white
        assert corrupt(flat, "noise", grade).pixels.float().std() / 255 == pytest.approx(NOISE[grade - 1], rel=0.02)


def test_blur_is_scipys(images: Images) -> None:
    ours = corrupt(images, "blur", 3).pixels[0, 0].float()
    scipys = gaussian_filter(images.pixels[0, 0].double().numpy(), BLUR[2] * 28 / 32, mode="nearest", radius=3)
    torch.testing.assert_close(ours, torch.from_numpy(scipys).float(), atol=0.51, rtol=0)


def test_contrast_shrinks_towards_the_mean(images: Images) -> None:
    changed = corrupt(images, "contrast", 2).pixels[0].float()
    mean = images.pixels[0].float().mean()
    expected = mean + CONTRAST[1] * (images.pixels[0].float() - mean)
    torch.testing.assert_close(changed, expected, atol=0.51, rtol=0)


def test_a_shift_moves_the_whole_image(images: Images) -> None:
    pixels = torch.zeros_like(images.pixels)
    pixels[:, :, 2:-2, 2:-2] = images.pixels[:, :, 2:-2, 2:-2]
    changed = corrupt(replace(images, pixels=pixels), "shift", 2).pixels
    moves = set()
    for before, after in zip(pixels[:50, 0], changed[:50, 0], strict=True):
        found = [
            (down, right)
            for down in (-2, 0, 2)
            for right in (-2, 0, 2)
            if torch.equal(before.roll((down, right), (0, 1)), after)
        ]
        assert len(found) == 1
        moves.add(found[0])
    assert len(moves) == 8
    assert (0, 0) not in moves


def test_unknown_corruptions_are_refused(images: Images) -> None:
    for kind, grade in (("fog", 1), ("noise", 6)):
        with pytest.raises(InputError, match="kinds are noise, blur, contrast, shift, and grades 1 to 5"):
            corrupt(images, kind, grade)
