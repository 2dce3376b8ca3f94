"""Changes of a recipe: numbers that move its milestones along, and texts that say what is wrong with them."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from rkcnn.error import InputError
from rkcnn.fit.recipe import RECIPES, Recipe, find_recipe
from rkcnn.fit.recipe_changes import change_recipe, read_changes


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


def test_overrides_are_read_by_their_kind_and_remembered() -> None:
    text = {"epochs": "2", "lr": "0.5", "nesterov": "on", "milestones": "1_2", "precision": "bf16", "flip": "False"}
    recipe = replace(find_recipe("mini"), **read_changes(text))
    told = {"epochs": 2, "lr": 0.5, "nesterov": True, "milestones": (1, 2), "precision": "bf16"}
    assert recipe.changes() == told
    assert find_recipe("mini").changes() == {}
    assert replace(find_recipe("mini"), milestones=()).milestones == ()


def test_every_field_can_be_overridden() -> None:
    own = RECIPES["mini"]
    for field in fields(Recipe):
        value = getattr(own, field.name)
        text = "_".join(map(str, value)) if isinstance(value, tuple) else str(value)
        if field.name != "name":
            assert replace(find_recipe("mini"), **read_changes({field.name: text})) == own


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
        replace(find_recipe(name), **read_changes(changes))
    assert says in str(error.value)
    assert "\n" not in str(error.value)
