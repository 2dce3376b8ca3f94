"""Recipes: the paper's exactly (docs/spec.md, 5), and overrides that say what is wrong with them."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.error import InputError
from rkcnn.fit.recipe import (
    OWN_EPOCHS,
    RECIPES,
    Recipe,
    change_recipe,
    find_recipe,
    own,
)

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


@pytest.mark.parametrize(
    ("name", "epochs", "milestones"),
    [
        ("mini", 36, (18, 28)),
        ("mini", 2, (1,)),
        ("mini", 1, ()),
        ("paper-mnist", 16, (6, 10, 14)),
        ("fast-cifar", 3, ()),
    ],
)
def test_milestones_move_along_with_the_epochs(name: str, epochs: int, milestones: tuple[int, ...]) -> None:
    assert change_recipe(RECIPES[name], {"epochs": epochs}).milestones == milestones
    assert change_recipe(RECIPES[name], {"epochs": epochs, "milestones": (1, 5)}).milestones == (1, 5)
    assert change_recipe(RECIPES[name], {"lr": 0.5}).milestones == RECIPES[name].milestones


def test_the_schedule_in_words() -> None:
    assert RECIPES["mini"].describe_schedule() == "lr 0.1, divided by 10 after epochs 9 and 14"
    assert RECIPES["paper-mnist"].describe_schedule() == "lr 0.1, divided by 10 after epochs 60, 100 and 140"
    assert find_recipe("mini", {"epochs": "10"}).describe_schedule() == "lr 0.1, divided by 10 after epoch 9"
    assert RECIPES["smoke"].describe_schedule() == "lr 0.1"
    assert RECIPES["fast-cifar"].describe_schedule() == "lr rises to 0.4 at 25 % of the run and falls to 0"


@given(st.integers(1, 1_000_000), st.sampled_from([1, 3]))
def test_own_images_get_enough_steps(images: int, channels: int) -> None:
    recipe = own(images, channels)
    steps = images // recipe.batch * recipe.epochs
    assert steps >= 300 or recipe.epochs == OWN_EPOCHS[1]
    assert OWN_EPOCHS[0] <= recipe.epochs <= OWN_EPOCHS[1]
    assert (recipe.flip, recipe.name) == (channels == 3, "own")


def test_overrides_are_read_by_their_kind_and_remembered() -> None:
    text = {"epochs": "2", "lr": "0.5", "nesterov": "on", "milestones": "1_2", "precision": "bf16", "flip": "False"}
    recipe = find_recipe("mini", text)
    told = {"epochs": 2, "lr": 0.5, "nesterov": True, "milestones": (1, 2), "precision": "bf16"}
    assert recipe.changes() == told
    assert find_recipe("mini").changes() == {}
    assert find_recipe("mini", {"milestones": ""}).milestones == ()


def test_every_field_can_be_overridden() -> None:
    own = RECIPES["mini"]
    for field in fields(Recipe):
        value = getattr(own, field.name)
        text = "_".join(map(str, value)) if isinstance(value, tuple) else str(value)
        if field.name != "name":
            assert find_recipe("mini", {field.name: text}) == own


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("minni", {}, "did you mean mini?"),
        (
            "",
            {},
            "recipes are paper-mnist, paper-cifar, paper-svhn, mini, fast-mnist, fast-cifar, fast-svhn, best-cifar, "
            "own, smoke",
        ),
        ("mini", {"epoch": "3"}, "a recipe has no field 'epoch' (did you mean epochs?)"),
        ("mini", {"name": "x"}, "no field 'name'"),
        ("mini", {"epochs": "many"}, "epochs=many given; it must be a whole number"),
        ("mini", {"epochs": "1.5"}, "a whole number"),
        ("mini", {"lr": "fast"}, "it must be a number"),
        ("mini", {"nesterov": "maybe"}, "it must be on or off"),
        ("mini", {"milestones": "3,4"}, "whole numbers joined by _"),
        ("mini", {"milestones": "-5"}, "milestones=-5 given; each must be a number of epochs from 1 on"),
        ("mini", {"milestones": "0_9"}, "milestones=0_9 given; each must be"),
        ("mini", {"schedule": "cosine"}, "it is one of steps, triangle"),
        ("mini", {"init": "zeros"}, "it is one of paper, torch, he"),
        ("mini", {"precision": "fp8"}, "it is one of fp32, tf32, bf16"),
        ("mini", {"lr": "nan"}, "lr=nan given"),
        ("mini", {"lr": "inf"}, "lr=inf given"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(name: str, changes: dict[str, str], says: str) -> None:
    with pytest.raises(InputError) as error:
        find_recipe(name, changes)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


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
        assert getattr(find_recipe("mini", {field: str(inside)}), field) == inside
    step = 1 if isinstance(low, int) and isinstance(high, int) and high > 1 else 1e-4
    for outside in (low - step, high + step):
        with pytest.raises(InputError, match=f"{field}={outside} given; it must be from"):
            find_recipe("mini", {field: str(outside)})
