"""The identity of an experiment: data, network, recipe and seed. Imports no torch."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rkcnn.fit.recipe import Recipe


@dataclass(frozen=True)
class Run:
    """One experiment; its folder and its place in every table follow from these four values."""

    data: str
    spec: str  # the network's full name
    recipe: Recipe
    seed: int

    @property
    def folder(self) -> Path:
        """As mnist-mini/RKCNN-R-2@k=32/mini,epochs=2/seed-0; characters that a folder can't have are replaced."""
        parts = (self.data, self.spec, str(self.recipe), f"seed-{self.seed}")
        return Path(*(folder_name(part) for part in parts))

    @property
    def validates(self) -> bool:
        """Whether its errors are those of images held out of the training set, and no test image was looked at."""
        return "~validation-" in self.data

    def as_dict(self) -> dict[str, Any]:
        """The run as JSON would give it back, with lists for tuples."""
        facts = {"data": self.data, "spec": self.spec, "recipe": self.recipe.as_dict(), "seed": self.seed}
        return json.loads(json.dumps(facts))


def read_run(facts: dict[str, Any]) -> Run:
    """The run that `as_dict` wrote; a recipe field that did not exist then takes its default.

    Raises TypeError or ValueError where the values are not those of a run.
    """
    known = {field.name for field in fields(Recipe)}
    for name in facts["recipe"]:
        if name not in known:
            raise TypeError(f"the recipe has {name}, which this version doesn't know")
    recipe: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in facts["recipe"].items()
    }
    return Run(facts["data"], facts["spec"], Recipe(**recipe), facts["seed"])


def folder_name(part: str) -> str:
    """A part of a run's name as a folder may be called; characters that it can't have become ~."""
    return "".join(c if c.isalnum() or c in "-_.@=,+" else "~" for c in part)
