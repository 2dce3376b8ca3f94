"""How far a run is, as its folder shows. Imports no torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rkcnn.disk import MissingFile, open_file
from rkcnn.error import InputError
from rkcnn.fit.checkpoint_file import read_facts
from rkcnn.json_file import LONG, read_json
from rkcnn.record.result import Epoch, Result, find_results, read_progress, read_result
from rkcnn.record.run import Run
from rkcnn.run_folder import RESULT, checkpoint_path, find_begun_folders, find_checkpoints, tensors_of

NEW, BEGUN = "new", "begun"


class BegunRun(NamedTuple):
    """A run with a checkpoint and without a result."""

    run: Run
    epochs: tuple[Epoch, ...]  # those that are done
    seconds: float
    damaged: tuple[Path, ...] = ()  # newer checkpoints that are passed over


class FinishedRun(NamedTuple):
    """A finished run and its folder."""

    folder: Path
    run: Run


def find_state(run: Run, out: Path, store: Path | None = None) -> Result | str:
    """Return the run's result, or else BEGUN or NEW; a run has begun if `out` or `store` has a checkpoint of it."""
    folder = out / run.folder
    path = folder / RESULT
    try:
        with suppress(MissingFile):
            result = read_result(path)
            if result.run != run:
                raise InputError(f"{path} is of another run, made by {result.run.recipe}; move it away")
            return result
        places = (out,) if store is None else (out, store)
        return BEGUN if any(find_checkpoints(place / run.folder) for place in places) else NEW
    except OSError as error:
        raise InputError(f"{folder} can't be looked into: {error.strerror}; name another `out=...`") from None


def find_begun_runs(top: Path) -> Iterator[tuple[Path, BegunRun | InputError]]:
    """Yield every folder below `top` with a begun run, sorted by name, and the run or why it can't be read."""
    for folder in find_begun_folders(top):
        yield folder, _read_begun(folder)


def _read_begun(folder: Path) -> BegunRun | InputError:
    """Read the newest checkpoint that is not damaged, from which the run would continue."""
    damaged: list[Path] = []
    for path in reversed(find_checkpoints(folder)):
        try:
            facts = read_facts(path)
            if not _has_tensors(path, facts["sha256"]):
                raise ValueError("the checksum of its tensors differs")
            run, epochs, _ = read_progress(facts["identity"], facts["history"]["epochs"], facts["history"]["stretches"])
            return BegunRun(run, epochs, sum(epoch.seconds for epoch in epochs), tuple(damaged))
        except (OSError, ValueError, KeyError, TypeError):
            if path.exists():  # a run that goes on deletes old ones
                damaged.append(path)
    return InputError(f"no checkpoint in {folder} can be read; remove them to start anew")


def _has_tensors(path: Path, expected: object) -> bool:
    """Whether the tensors of a checkpoint are there and have that checksum."""
    with open_file(tensors_of(path)) as file:
        return bool(hashlib.file_digest(file, "sha256").hexdigest() == expected)


def find_shorter_run(run: Run, folder: Path, checksums: Mapping[str, str]) -> FinishedRun | None:
    """Return the longest finished run that `run`, which has more epochs and is otherwise equal, can continue.

    It must have been trained on images with these checksums and still have its last checkpoint. Only the schedule
    `steps` begins alike for any number of epochs.
    """
    if run.recipe.schedule != "steps":
        return None
    found: dict[int, FinishedRun] = {}
    for path, result in find_results(folder.parent.parent):
        if isinstance(result, InputError) or not result.finished or not checksums.items() <= result.data.items():
            continue
        epochs = result.run.recipe.epochs
        same = replace(run, recipe=replace(run.recipe, epochs=epochs))
        if result.run == same and epochs < run.recipe.epochs and _has_checkpoint(path.parent, epochs):
            found[epochs] = FinishedRun(path.parent, result.run)
    return found[max(found)] if found else None


def _has_checkpoint(folder: Path, epochs: int) -> bool:
    """Whether there is a checkpoint after so many epochs, with its tensors; results are often copied without them.

    If the rest of what its JSON file says is damaged, `fit.checkpoint` names it and takes the checkpoint before it.
    """
    path = checkpoint_path(folder, epochs, 0)
    try:
        return _has_tensors(path, read_json(path, LONG)["sha256"])
    except (OSError, ValueError, KeyError):
        return False
