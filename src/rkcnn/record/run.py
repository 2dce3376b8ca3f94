"""The identity of an experiment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rkcnn.train.recipe import Recipe


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
        changed = [f"{name}={_text(value)}" for name, value in self.recipe.changes().items()]
        parts = (self.data, self.spec, ",".join([self.recipe.name, *changed]), f"seed-{self.seed}")
        return Path(*(_safe(part) for part in parts))

    def as_dict(self) -> dict[str, Any]:
        """As JSON gives it back, so that two can be compared."""
        facts = {"data": self.data, "spec": self.spec, "recipe": self.recipe.as_dict(), "seed": self.seed}
        return json.loads(json.dumps(facts))


def _text(value: object) -> str:
    return "_".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _safe(part: str) -> str:
    return "".join(c if c.isalnum() or c in "-_.@=,+" else "~" for c in part)
