"""The settings of a run as a file, config.json, by which `rkcnn train --config` repeats it. Imports no torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rkcnn.data.options import OwnOptions, read_own_options
from rkcnn.disk import read_file
from rkcnn.error import InputError
from rkcnn.fit.recipe import Recipe
from rkcnn.json_file import SHORT, check_fields, parse_json
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
    content = read_file(path, SHORT)
    try:
        facts = parse_json(content, dict)
        check_fields("file", facts, _KINDS, known=set(_KINDS))
        if facts["data"].startswith("arrays-"):
            raise InputError("the run was trained on arrays, which no file holds; repeat it from Python (rkcnn.train)")
        own = read_own_options(facts["own"])
        return Config(**{**facts, "own": own, "recipe": read_recipe(facts["recipe"])})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} can't be read as the settings of a run: {error}; give a run's config.json") from None
