"""The settings of a run as a file, config.json, by which `rkcnn train --config` repeats it. Imports no torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rkcnn.data.options import OwnOptions
from rkcnn.error import InputError, did_you_mean
from rkcnn.fit.recipe import Recipe
from rkcnn.record.result import check_fields
from rkcnn.record.run import read_recipe

_KINDS = {"network": str, "data": str, "own": dict, "validation": int, "recipe": dict, "seed": int}


@dataclass(frozen=True)
class Config:
    """Everything that decides what a run computes, apart from the content of its images."""

    network: str
    data: str  # as it was given: a name, folder:PATH or npz:PATH; the name of arrays can't be loaded again
    own: OwnOptions  # how a user's own images are read
    validation: int  # how many training images are held out; 0: errors are those of the test images
    recipe: Recipe  # with every field
    seed: int

    def to_json(self) -> bytes:
        return (json.dumps(asdict(self), indent=1) + "\n").encode()


def read_config(path: Path) -> Config:
    """Read config.json of a run's folder, or a file like it; raises InputError unless it has all settings of a run."""
    try:
        facts = json.loads(path.read_bytes())
        check_fields("file", facts, _KINDS, known=set(_KINDS))
        if facts["data"].startswith("arrays-"):
            raise InputError("the run was trained on arrays, which no file holds; repeat it from Python (rkcnn.train)")
        own = _check_own(facts["own"])
        return Config(**{**facts, "own": own, "recipe": read_recipe(facts["recipe"])})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (OSError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path} can't be read as the settings of a run: {reason}; give a run's config.json") from None


def _check_own(given: dict[str, Any]) -> OwnOptions:
    known = [field.name for field in fields(OwnOptions)]
    for name in given:
        if name not in known:
            raise TypeError(f"own images have no option {name!r}{did_you_mean(name, known)}")
    return OwnOptions(**given)
