"""Which experiment a run is: its data, network, recipe and seed; and its settings as a file, config.json.

`rkcnn train --config` repeats the run of such a file. Imports no torch.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rkcnn.data.options import OwnOptions, read_own_options
from rkcnn.disk import read_file
from rkcnn.error import InputError
from rkcnn.fit.recipe import KINDS, Recipe
from rkcnn.json_file import SHORT, Kinds, check_fields, parse_json

LONGEST_NAME = 255  # bytes that the name of a folder has at most


@dataclass(frozen=True)
class Run:
    """One experiment. Its folder and its place in every table follow from these four values."""

    data: str
    network: str  # its full name
    recipe: Recipe
    seed: int

    @property
    def folder(self) -> Path:
        """Its folder below `out`, as mnist-mini/RKCNN-R-2@k=32/mini,epochs=2/seed-0."""
        parts = (self.data, self.network, str(self.recipe), f"seed-{self.seed}")
        return Path(*(folder_name(part) for part in parts))

    @property
    def held_out(self) -> str:
        """What its errors are measured on: "test", or "validation" if part of the training images was set apart."""
        return "validation" if self.validation else "test"

    @property
    def data_set(self) -> str:
        """The name of its data set alone: folder:photos of folder:photos~size-32~split-0.2~validation-50."""
        return _DATA_OPTIONS.sub("", self.data)

    @property
    def validation(self) -> int:
        """How many training images were set apart to measure errors on."""
        found = _DATA_OPTIONS.search(self.data)
        return int(found["validation"] or 0) if found else 0

    def as_dict(self) -> dict[str, Any]:
        """Return the run as JSON gives it back, with lists for tuples."""
        return json.loads(json.dumps(asdict(self)))


def read_run(facts: dict[str, Any]) -> Run:
    """Return the run that `as_dict` described; a recipe's field that did not exist then takes its default.

    Raises TypeError or ValueError if the values are not those of a run.
    """
    run = Run(facts["data"], facts["network"], read_recipe(facts["recipe"]), facts["seed"])
    if not 0 <= run.seed < 1 << 63:
        raise ValueError(f"the run's seed is {run.seed}, and must be from 0 to 2^63 - 1")
    if "~" in run.data_set and not run.data_set.startswith(("folder:", "npz:", "arrays-")):
        raise ValueError(f"the run's data is {run.data}, which has an option that this version doesn't know")
    return run


def read_recipe(facts: dict[str, Any]) -> Recipe:
    """Return the recipe with these fields, as JSON has them; raises TypeError or ValueError if it can't be one."""
    check_fields("recipe", facts, {}, known=set(KINDS), optional={name: _TYPES[kind] for name, kind in KINDS.items()})
    return Recipe(**facts)


_TYPES: Kinds = {"int": int, "float": (int, float), "bool": bool, "str": str, "tuple[int, ...]": list}


def name_data(
    data_set: str,
    size: int | None = None,
    split: float | None = None,
    validation: int = 0,
    channels: int | None = None,
) -> str:
    """Return the data name of a run: NAME, and what was chosen about its images, as in NAME~size-32~split-0.2."""
    chosen = {"size": size, "channels": channels, "split": split, "validation": validation or None}
    return data_set + "".join(f"~{name}-{value}" for name, value in chosen.items() if value is not None)


_DATA_OPTIONS = re.compile(
    r"(~size-\d{1,18})?(~channels-[13])?(~split-[\d.e-]+)?(~validation-(?P<validation>\d{1,18}))?\Z", re.ASCII
)


def folder_name(part: str) -> str:
    """Return a part of a run's name as the name of a folder, with ~ for characters that it can't have.

    A name of more bytes than file systems take ends with a hash of all of it instead.
    """
    name = "".join(c if c.isalnum() or c in "-_.@=,+" else "~" for c in part)
    if len(name.encode()) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(part.encode(errors="surrogatepass")).hexdigest()[:12]
    return name.encode()[: LONGEST_NAME - 13].decode(errors="ignore") + "~" + digest


_CONFIG_KINDS = {"network": str, "data": str, "own": dict, "validation": int, "recipe": dict, "seed": int}


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
        check_fields("file", facts, _CONFIG_KINDS, known=set(_CONFIG_KINDS))
        if facts["data"].startswith("arrays-"):
            raise InputError("the run was trained on arrays, which no file holds; repeat it from Python (rkcnn.train)")
        own = read_own_options(facts["own"])
        return Config(**{**facts, "own": own, "recipe": read_recipe(facts["recipe"])})
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} can't be read as the settings of a run: {error}; give a run's config.json") from None
