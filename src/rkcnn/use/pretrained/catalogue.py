"""Which pretrained weights the package holds, and what the metadata of their files says. Imports no torch."""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from rkcnn.data.sets import SETS
from rkcnn.error import InputError, did_you_mean
from rkcnn.json_file import Kinds, check_fields, parse_json
from rkcnn.model.families import find_original
from rkcnn.model.spec import parse
from rkcnn.record.result import Result, parse_result

FOLDER = files("rkcnn.use.pretrained")
SUFFIX = ".safetensors"
UNVERIFIED = "trained and tested on images that are not, byte for byte, those of the published files"
LISTING = "`rkcnn models --pretrained` lists all"
_LOCATED: dict[str, Path] = {}  # where files of the package lie on the disk
_EXTRACTED = ExitStack()  # where the package is a zip file: copies of weights, which are kept until Python ends
atexit.register(_EXTRACTED.close)


@dataclass(frozen=True)
class Storage:
    """How weights are stored in a file, and what they got wrong when it was written, computed in float32."""

    weights: str  # the numbers of convolutions and linear layers: fp16, bf16 or fp32; all others are float32
    images: int  # of the whole test set
    wrong: int  # of them, with the numbers that are stored
    wrong_before: int  # of them, with the numbers that the run ended with
    first_images: int  # of the test set, in its order: those that a quick test asks about
    first_wrong: int
    logit_difference: float  # the largest on those first images, between the two kinds of numbers


_STORAGE_KINDS: Kinds = {
    "weights": str,
    **dict.fromkeys(("images", "wrong", "wrong_before", "first_images", "first_wrong"), int),
    "logit_difference": (int, float),
}


@dataclass(frozen=True)
class Pretrained:
    """A trained network of the package: `NETWORK.SET`, as in RKCNN-R-2@k=32.mnist."""

    name: str
    path: Path

    @property
    def network(self) -> str:
        """The full name of the network."""
        return self.name.rpartition(".")[0]

    @property
    def data(self) -> str:
        """The name of the data set that it was trained on."""
        return self.name.rpartition(".")[2]

    @cached_property
    def metadata(self) -> dict[str, str]:
        """What the file says about its weights; every value is text."""
        try:
            with safe_open(self.path, framework="np") as file:
                found = file.metadata() or {}
        except (OSError, SafetensorError) as error:
            raise InputError(f"{self.path} can't be read ({error}); install rkcnn again") from None
        if missing := {"record", "storage"} - found.keys():
            raise InputError(f"{self.path} has no {' and no '.join(sorted(missing))} in it; install rkcnn again")
        return found

    @cached_property
    def result(self) -> Result:
        """The record of the run that trained it."""
        return parse_result(self.metadata["record"], self.path)

    @cached_property
    def storage(self) -> Storage:
        """How its weights are stored."""
        try:
            facts = parse_json(self.metadata["storage"], dict)
            check_fields("storage", facts, _STORAGE_KINDS, known=set(_STORAGE_KINDS))
        except (ValueError, TypeError) as error:
            raise InputError(f"{self.path} can't be read: {error}; install rkcnn again") from None
        return Storage(**facts)

    def describe(self) -> dict[str, Any]:
        """Return a row of `rkcnn models --pretrained`."""
        run = self.result.run
        return {
            "name": self.name,
            "network": self.network,
            "data": self.data,
            "params": self.result.params,
            "bytes": self.path.stat().st_size,
            "weights": self.storage.weights,
            "recipe": str(run.recipe),
            "precision": run.recipe.precision,
            "seed": run.seed,
            "error": self.result.error,
            "images": self.storage.images,
            "verified": bool(self.result.data.get("verified")),
        }


def list_pretrained() -> list[str]:
    """Return the names of the trained networks that come with the package, as in RKCNN-R-2@k=32.mnist.

    `rkcnn.load`, `evaluate`, `predict` and the other functions and commands that take a run's folder also take such a
    name; `create_model` takes its two parts: `create_model("RKCNN-R-2@k=32", pretrained="mnist")`.
    """
    return [each.name for each in read_catalogue()]


def read_catalogue() -> list[Pretrained]:
    """Return the trained networks of the package, in the order of `rkcnn data list`, the shorter names first."""
    found = [each for each in FOLDER.iterdir() if each.name.removesuffix(SUFFIX).rpartition(".")[2] in SETS]
    weights = [Pretrained(each.name.removesuffix(SUFFIX), _locate(each)) for each in found]
    order = list(SETS)
    return sorted(weights, key=lambda each: (order.index(each.data), len(each.network), each.network))


def _locate(file: Traversable) -> Path:
    """Return where a file of the package lies on the disk, extracted until the program ends if it is in an archive."""
    if str(file) not in _LOCATED:
        _LOCATED[str(file)] = _EXTRACTED.enter_context(as_file(file))
    return _LOCATED[str(file)]


def find_pretrained(path: str | Path) -> Pretrained | None:
    """Return the weights of which this is the name; None if it is that of a file or folder, or of nothing we know.

    Raises InputError, with the names that would work, for a network alone and for NETWORK.SET that the package lacks.
    """
    text = str(path)
    if os.path.exists(path):  # unlike Path.exists, it also takes a name that is longer than any file's
        return None
    if network := _full_name(text):
        raise InputError(f"{text} is the name of a network{_say_what_works(text, network)}")
    head, dot, data = text.rpartition(".")
    network = _full_name(head)
    return select_pretrained(network, data) if dot and network and not data.isdigit() else None


def locate_weights(path: str | Path) -> Path:
    """Return the file of pretrained weights of which this is the name, and any other path as it is."""
    found = find_pretrained(path)
    return Path(path) if found is None else found.path


def select_pretrained(network: str, data: str) -> Pretrained:
    """Return the weights of a network that was trained on a data set; InputError, with what there is, if none are."""
    known = [each for each in read_catalogue() if each.network.lower() == (_full_name(network) or network).lower()]
    for each in known:
        if isinstance(data, str) and each.data == data.lower():
            return each
    if known:
        sets = [each.data for each in known]
        hint = did_you_mean(data, sets) if isinstance(data, str) else ""
        raise InputError(
            f"there are no weights of {known[0].network} trained on {data}{hint}; there are some trained on "
            f"{' and '.join(sets)}"
        )
    there = ", ".join(dict.fromkeys(each.network for each in read_catalogue()))
    raise InputError(
        f"there are no pretrained weights of {network}; this package has "
        + (f"some of {there} ({LISTING})" if there else "none of any network")
    )


def _say_what_works(text: str, network: str) -> str:
    """Return the end of a sentence on a network's name that was given where trained weights are needed."""
    train = f"train it (rkcnn train {text}) and give the folder of the run"
    names = [each.name for each in read_catalogue() if each.network == network]
    if names:
        return f", and not of trained weights; give {' or '.join(names)}, or {train}"
    return f", of which the package has no trained weights ({LISTING}); {train}"


def _full_name(name: str) -> str:
    """Return the full name of a network; empty if there is none of that name."""
    try:
        original = find_original(name)
        return original.name if original else str(parse(name))
    except InputError:
        return ""
