"""Recipes: the paper's exactly (docs/spec.md, 5), their schedules, and the values that a field may have."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.error import InputError
from rkcnn.fit.recipe import OWN_EPOCHS, RECIPES, Recipe, find_recipe, own


def change_mini(**values: Any) -> Recipe:
    return replace(find_recipe("mini"), **values)


PLAIN = {
    "schedule": "steps",
    "momentum": 0.9,
    "label_smoothing": 0.0,
    "cutout": 0,
    "decay_norms": True,
    "ema_decay": 0.0,
    "precision": "fp32",
}
NOT_THE_PAPERS = ("recompute_norms", "weigh_classes", "head_only", "cutmix", "initial_weights")
PAPER: dict[str, dict[str, Any]] = {
    "paper-mnist": {
        **PLAIN,
        "epochs": 160,
        "batch": 128,
        "lr": 0.1,
        "milestones": (60, 100, 140),
        "nesterov": False,
        "weight_decay": 0.0,
        "dropout": 0.0,
        "padding": 4,
        "flip": False,
        "drop_last": True,
    },
    "paper-cifar": {
        **PLAIN,
        "epochs": 300,
        "batch": 32,
        "lr": 0.1,
        "milestones": (150, 225),
        "nesterov": True,
        "weight_decay": 1e-4,
        "dropout": 0.0,
        "padding": 4,
        "flip": True,
        "drop_last": False,
    },
    "paper-svhn": {
        **PLAIN,
        "epochs": 40,
        "batch": 128,
        "lr": 0.1,
        "milestones": (20, 30),
        "nesterov": True,
        "weight_decay": 1e-4,
        "dropout": 0.2,
        "padding": 0,
        "flip": False,
        "drop_last": False,
    },
}


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_are_exact(name: str) -> None:
    values = asdict(RECIPES[name])
    others = ("name", "peak", "init", "sync_norm", "max_steps_per_epoch", *NOT_THE_PAPERS)
    assert {key: value for key, value in values.items() if key not in others} == PAPER[name]
    assert not any(values[field] for field in NOT_THE_PAPERS)
    # one period: torch's defaults, several: He and Xavier, which is what "paper" means
    assert RECIPES[name].init == "paper"


@pytest.mark.parametrize(
    ("name", "images", "steps"),
    [("paper-mnist", 60_000, 468), ("paper-cifar", 50_000, 1563), ("paper-svhn", 604_388, 4722)],
)
def test_steps_in_an_epoch_are_the_papers(name: str, images: int, steps: int) -> None:
    recipe = RECIPES[name]
    assert (images // recipe.batch if recipe.drop_last else -(-images // recipe.batch)) == steps


@pytest.mark.parametrize("name", ["paper-mnist", "paper-cifar", "paper-svhn", "mini"])
def test_steps_fall_when_a_milestones_epochs_are_done(name: str) -> None:
    recipe = RECIPES[name]
    for number, milestone in enumerate(recipe.milestones):
        before, after = recipe.lr * 0.1**number, recipe.lr * 0.1 ** (number + 1)
        assert recipe.lr_at(milestone - 1, 467, 468) == pytest.approx(before)
        assert recipe.lr_at(milestone, 0, 468) == pytest.approx(after)
    assert recipe.lr_at(0, 0, 468) == recipe.lr


@given(st.floats(0, 0.999), st.integers(1, 50), st.integers(1, 40))
def test_a_triangle_rises_to_its_peak_and_falls_to_nothing(peak: float, epochs: int, steps: int) -> None:
    recipe = replace(RECIPES["fast-cifar"], peak=peak, epochs=epochs, lr=2.0)
    rates = [recipe.lr_at(epoch, step, steps) for epoch in range(epochs) for step in range(steps)]
    assert all(0 <= rate <= 2 * (1 + 1e-12) for rate in rates)
    top = rates.index(max(rates))
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)


def test_a_triangles_corners() -> None:
    recipe = replace(RECIPES["fast-cifar"], peak=0.25, epochs=8, lr=1.0)
    assert recipe.lr_at(0, 0, 10) == 0
    assert recipe.lr_at(1, 0, 10) == pytest.approx(0.5)
    assert recipe.lr_at(2, 0, 10) == pytest.approx(1)
    assert recipe.lr_at(5, 0, 10) == pytest.approx(0.5)
    assert recipe.lr_at(7, 9, 10) == pytest.approx(0.1 / 6)


def test_the_schedule_in_words() -> None:
    assert RECIPES["mini"].describe_schedule() == "lr 0.1, divided by 10 after epochs 9 and 14"
    assert RECIPES["paper-mnist"].describe_schedule() == "lr 0.1, divided by 10 after epochs 60, 100 and 140"
    assert change_mini(epochs=10).describe_schedule() == "lr 0.1, divided by 10 after epoch 9"
    assert RECIPES["smoke"].describe_schedule() == "lr 0.1"
    assert RECIPES["fast-cifar"].describe_schedule() == "lr rises to 0.4 at 25 % of the run and falls to 0"


@given(st.integers(1, 1_000_000), st.sampled_from([1, 3]))
def test_own_images_get_enough_steps(images: int, channels: int) -> None:
    recipe = own(images, channels)
    steps = images // recipe.batch * recipe.epochs
    assert steps >= 300 or recipe.epochs == OWN_EPOCHS[1]
    assert OWN_EPOCHS[0] <= recipe.epochs <= OWN_EPOCHS[1]
    assert (recipe.flip, recipe.name) == (channels == 3, "own")


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [
        ("epochs", 1, 15_000),
        ("batch", 1, 10_000_000),
        ("lr", 0, 1e4),
        ("peak", 0, 0.999),
        ("momentum", 0, 1),
        ("weight_decay", 0, 1e3),
        ("dropout", 0, 0.999),
        ("label_smoothing", 0, 1),
        ("padding", 0, 1000),
        ("cutout", 0, 10_000),
        ("ema_decay", 0, 0.999999),
    ],
)
def test_every_bound(field: str, low: float, high: float) -> None:
    for inside in (low, high):
        assert getattr(change_mini(**{field: inside}), field) == inside
    step = 1 if isinstance(low, int) and isinstance(high, int) and high > 1 else 1e-4
    for outside in (low - step, high + step):
        with pytest.raises(InputError, match=f"{field}={outside} given; it must be from"):
            change_mini(**{field: outside})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"epochs": 2.5}, "`epochs=2.5` given; it must be a whole number"),
        ({"batch": "32"}, "`batch='32'` given; it must be a whole number"),
        ({"cutout": True}, "`cutout=True` given; it must be a whole number"),
        ({"lr": "fast"}, "`lr='fast'` given; it must be a number"),
        ({"lr": None}, "`lr=None` given; it must be a number"),
        ({"flip": 1}, "`flip=1` given; it must be True or False"),
        ({"milestones": 3}, "`milestones=3` given; it must be a tuple of whole numbers"),
        ({"milestones": (3, 4.5)}, r"`milestones=\(3, 4.5\)` given; it must be a tuple of whole numbers"),
        ({"precision": 16}, "`precision=16` given; it must be text"),
    ],
)
def test_every_kind(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        change_mini(**changes)


def test_numpys_numbers_are_kept_as_pythons() -> None:
    recipe = change_mini(epochs=np.int64(3), lr=np.float32(0.5), milestones=[np.int64(1)])
    assert json.loads(json.dumps(asdict(recipe))) | {"milestones": (1,)} == asdict(recipe)
    assert (recipe.epochs, recipe.lr, recipe.milestones) == (3, 0.5, (1,))


def test_a_recipe_of_ones_own_is_told_from_others_of_its_name() -> None:
    mine = Recipe("mine", epochs=2, batch=32, lr=0.1)
    assert str(mine) == "mine,epochs=2,batch=32,lr=0.1"
    assert str(replace(mine, flip=True)) == "mine,epochs=2,batch=32,lr=0.1,flip=True"
    assert replace(mine, precision="bf16").describe_precision() == "mine,epochs=2,batch=32,lr=0.1 in bf16"


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "a b", "a,b=1", "-x", "ä"])
def test_a_name_that_no_folder_should_have(name: str) -> None:
    with pytest.raises(InputError, match=r"recipe name .* given; it begins with a letter or digit"):
        Recipe(name, epochs=2, batch=32, lr=0.1)
