"""The identity of an experiment."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from rkcnn.fit.recipe import RECIPES, Recipe


@dataclass(frozen=True)
class Run:
    """(data, network, recipe, seed): the name of an experiment, its folder, its cache key."""

    data: str
    spec: str
    recipe: Recipe
    seed: int

    @property
    def folder(self) -> Path:
        """mnist-mini/RKCNN-R-2@k=32/mini,epochs=2/seed-0; characters that folders can't have are replaced."""
        parts = (self.data, self.spec, recipe_text(self.recipe.as_dict()), f"seed-{self.seed}")
        return Path(*(folder_name(part) for part in parts))

    def as_dict(self) -> dict[str, Any]:
        """As JSON gives it back, so that two can be compared."""
        facts = {"data": self.data, "spec": self.spec, "recipe": self.recipe.as_dict(), "seed": self.seed}
        return json.loads(json.dumps(facts))


def read_run(facts: dict[str, Any]) -> Run:
    """What `as_dict` wrote."""
    recipe = {**facts["recipe"], "milestones": tuple(facts["recipe"]["milestones"])}
    return Run(facts["data"], facts["spec"], Recipe(**recipe), facts["seed"])


def fill_run(facts: dict[str, Any]) -> dict[str, Any]:
    """What a record says of its run, to be compared with `as_dict`: a recipe field from before it existed is a default.

    Fields that this version doesn't know stay, so such a record is of another run.
    """
    return {**facts, "recipe": {**_DEFAULTS, **facts["recipe"]}}


_DEFAULTS: dict[str, Any] = {
    each.name: list(each.default) if isinstance(each.default, tuple) else each.default
    for each in fields(Recipe)
    if each.default is not MISSING
}


def recipe_text(values: dict[str, Any]) -> str:
    """mini,epochs=2: a recipe's name and what was overridden, also where the values come out of a JSON file."""
    own = RECIPES[values["name"]].as_dict() if values["name"] in RECIPES else values
    changed = [f"{name}={_text(value)}" for name, value in values.items() if _text(value) != _text(own.get(name))]
    return ",".join([values["name"], *changed])


def _text(value: object) -> str:
    return "_".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def folder_name(part: str) -> str:
    """What a folder can be called; characters that it can't have are replaced."""
    return "".join(c if c.isalnum() or c in "-_.@=,+" else "~" for c in part)
