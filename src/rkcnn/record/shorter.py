"""A finished run that a longer one can go on from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rkcnn.error import InputError
from rkcnn.record.result import find_results
from rkcnn.record.run import Run
from rkcnn.run_folder import checkpoint_path, tensors_of


class Shorter(NamedTuple):
    folder: Path
    run: Run


def find_shorter(run: Run, folder: Path, content: dict[str, str]) -> Shorter | None:
    """The longest finished run on these images that is `run` but for fewer epochs and has its last checkpoint.

    Only `steps` schedules begin alike. `content` are the checksums of the images.
    """
    if run.recipe.schedule != "steps":
        return None
    found: dict[int, Shorter] = {}
    for path, result in find_results(folder.parent.parent):
        if isinstance(result, InputError) or not result.finished or not content.items() <= result.data.items():
            continue
        epochs = result.run.recipe.epochs
        same = replace(run, recipe=replace(run.recipe, epochs=epochs))
        if result.run == same and epochs < run.recipe.epochs and _kept(path.parent, epochs):
            found[epochs] = Shorter(path.parent, result.run)
    return found[max(found)] if found else None


def _kept(folder: Path, epochs: int) -> bool:
    """Whether a sound checkpoint stands at the end of those epochs: a record is often copied without them."""
    path = checkpoint_path(folder, epochs, 0)
    try:
        told = json.loads(path.read_bytes())["sha256"]
        with tensors_of(path).open("rb") as file:
            return bool(hashlib.file_digest(file, "sha256").hexdigest() == told)
    except (OSError, ValueError, KeyError, TypeError):
        return False
