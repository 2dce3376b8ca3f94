"""What is said of runs that learn nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fit.bench import RECIPE, trainer
from outcome import outcome
from rkcnn.fit.recipe import RECIPES
from rkcnn.run.advice import advise_after, advise_before, constant_error
from rkcnn.use.images import load_images


def test_the_error_of_one_answer_for_all() -> None:
    pixels = np.zeros((10, 8, 8), np.uint8)
    training, test = load_images(((pixels, np.array([0] * 4 + [1] * 6)), (pixels, np.array([0] * 7 + [1] * 3))))
    assert constant_error(training, test) == pytest.approx(0.7)


def test_few_steps_and_missing_classes_are_said_before() -> None:
    run = trainer(recipe=RECIPE)  # 2 epochs of 4 steps
    images = replace(run.batches.images, name="npz:mine.npz")
    assert advise_before(images, run) == ["8 steps is little to learn from: `epochs=75` would make 300"]
    assert advise_before(replace(images, name="mnist-mini"), run) == []
    long = trainer(recipe=replace(RECIPE, epochs=75))
    assert advise_before(images, long) == []
    kept = images.labels > 0
    (said,) = advise_before(replace(images, pixels=images.pixels[kept], labels=images.labels[kept]), long)
    assert said == (
        "no training image is of class 0: if your classes begin at 1, subtract 1 from the labels, as in y - 1"
    )
    (said,) = advise_before(replace(images, labels=torch.full_like(images.labels, 9)), long)
    assert said == "no training image is of class 0, 1, 2, 3, 4, ..."


@pytest.mark.parametrize(
    ("errors", "changes", "says"),
    [
        ((0.9, 0.88), {}, "lr=0.01"),
        ((0.5, 0.1), {}, None),
        ((0.9, 0.8099), {}, None),  # NEAR_CHANCE of 0.9 is 0.81
        ((0.9, 0.8101), {}, "lr=0.01"),
        ((0.9, 0.88), {"images": 128}, "and the run had 2 steps; give it more, as in `epochs=300`"),
        ((0.9, 0.88), {"images": 128, "error": 0.01}, "and the run had 2 steps; give it more, as in `epochs=300`"),
        ((0.9, 0.88), {"error": 0.4499}, "though the training images are learned; more images may help"),
        ((0.9, 0.88), {"error": 0.4501}, "lr=0.01"),  # LEARNED of 0.9 is 0.45
        ((0.9, 0.88), {"error": 0.1}, "though the training images are learned; more images"),
        ((0.9, 0.88), {"constant": None}, None),
    ],
)
def test_chance_is_said_after(errors: tuple[float, ...], changes: dict[str, Any], says: str | None) -> None:
    made = outcome(errors, data={"constant_error": changes.get("constant", 0.9)})
    facts = {"images": changes.get("images", 128 * 500), "training_error": changes.get("error", 0.9)}
    made = replace(made, epochs=tuple(replace(epoch, **facts) for epoch in made.epochs))
    said = advise_after(made)
    assert len(said) == (says is not None)
    assert says is None or (
        says in said[0] and said[0].startswith("this is about chance: always giving the same class")
    )
    assert advise_after(replace(made, run=replace(made.run, recipe=RECIPES["smoke"]))) == []


@pytest.mark.parametrize(
    ("network", "error", "other"),
    [
        ("RKNet-rk4_38@k=8_8_8", 0.2, "RKNet-rk4_38@k=8_8_8,statistics=each"),
        ("ODENet-ab@k=8,norm=bn", 0.2, "ODENet-ab@k=8,norm=bn,statistics=each"),
        ("RKNet-rk4_38@k=8_8_8", 0.09, None),  # 1.5 times the training error, and less than two points more
        ("RKNet-rk4_38@k=8_8_8,statistics=each", 0.2, None),
        ("RKNet-rk4_38@k=8", 0.2, None),  # group norm in f
        ("RKNet-radau3@k=8_8_8", 0.2, None),
        ("RKNet-dopri5@k=8_8_8,tol=0.1", 0.2, None),  # it can't have a set for each
        ("ResNet@k=8_8_8", 0.2, None),
        ("Mine@k=8", 0.2, None),
    ],
)
def test_shared_statistics_are_named_where_the_gap_is_wide(network: str, error: float, other: str | None) -> None:
    made = outcome((0.5, error))
    made = replace(made, run=replace(made.run, network=network))
    made = replace(made, epochs=tuple(replace(epoch, training_error=0.05) for epoch in made.epochs))
    found = (
        f"the error is 5.00 % on training images and {100 * error:.2f} % on test images; too few images can do that, "
        "and here so can running statistics of batch norm that all evaluations of f share: "
    )
    assert advise_after(made) == ([f"{found}{other} has a set for each"] if other else [])


@pytest.mark.parametrize("change", [{"head_only": True, "initial_weights": "0" * 12}, {"initial_weights": "0" * 12}])
def test_statistics_are_not_named_where_other_weights_are_trained_further(change: dict[str, Any]) -> None:
    made = outcome((0.5, 0.2))
    recipe = replace(made.run.recipe, **change)
    assert advise_after(replace(made, run=replace(made.run, network="RKNet-rk4_38@k=8_8_8", recipe=recipe))) == []


def test_a_result_without_epochs_has_nothing_to_say() -> None:
    made = replace(outcome((0.5, 0.88), data={"constant_error": 0.9}), epochs=())
    assert advise_after(made) == []
