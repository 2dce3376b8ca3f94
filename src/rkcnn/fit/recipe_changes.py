"""Changes of a recipe's fields, as numbers or as text. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rkcnn.error import InputError, did_you_mean
from rkcnn.fit.recipe import KINDS, Recipe

FIELDS = [name for name in KINDS if name != "name"]  # of a recipe, which may be changed


def change_recipe(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """Return a recipe with some fields replaced; milestones move along with the number of epochs unless they are given.

    A milestone after two thirds of the epochs stays after two thirds of them; one that falls on the end is dropped.
    """
    changed = replace(recipe, **changes)
    if changed.epochs == recipe.epochs or "milestones" in changes:
        return changed
    moved = sorted({round(milestone * changed.epochs / recipe.epochs) for milestone in recipe.milestones})
    return replace(changed, milestones=tuple(milestone for milestone in moved if 0 < milestone < changed.epochs))


def read_changes(changes: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a recipe's fields that are given as text; raises InputError if a field or value is wrong."""
    values = {}
    for field, text in changes.items():
        if field not in FIELDS:
            hint = suggest_field(field)
            raise InputError(f"a recipe has no field {field!r}{hint}; its fields are {', '.join(FIELDS)}")
        convert, wanted = _CONVERTERS[KINDS[field]]
        try:
            values[field] = convert(text)
        except (ValueError, KeyError):
            raise InputError(f"recipe field {field}={text} given; it must be {wanted}") from None
    return values


NAMES_ELSEWHERE = {"learning_rate": "lr", "batch_size": "batch", "wd": "weight_decay", "num_epochs": "epochs"}
"""What other libraries call some fields of a recipe."""


def suggest_field(name: str) -> str:
    """Return " (did you mean lr?)" for what other libraries call a field, or for a name like it; "" for any other."""
    meant = NAMES_ELSEWHERE.get(name)
    return did_you_mean(name, FIELDS) if meant is None else f" (did you mean {meant}?)"


_CONVERTERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "bool": (lambda text: {"on": True, "true": True, "off": False, "false": False}[text.lower()], "on or off"),
    "str": (str, "text"),
    "tuple[int, ...]": (lambda text: tuple(int(n) for n in text.split("_") if n), "whole numbers joined by _"),
}
