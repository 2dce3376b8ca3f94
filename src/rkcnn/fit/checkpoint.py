"""Checkpoints of a run: tensors as safetensors, everything else as JSON. Loading one runs no code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from rkcnn.disk import write_atomically
from rkcnn.error import InputError
from rkcnn.fit.trainer import Trainer
from rkcnn.run_folder import checkpoint_path, find_checkpoint_files, find_checkpoints, tensors_of

REMEDY = "free some space there or choose another folder"
KEPT = 2  # checkpoints of a run: the newest, and the one before it in case the newest is damaged
SCHEMA = 2  # the version of the JSON file's shape

Json = dict[str, Any]


def save_checkpoint(folder: Path, trainer: Trainer, identity: Json, history: Json) -> Path:
    """Write a checkpoint and return its JSON file, which is written last and holds the tensors' checksum.

    `identity` names the run, and `history` is whatever the caller wants back from `load_checkpoint`.
    """
    path = checkpoint_path(folder, trainer.epoch, trainer.step)
    # Contiguous, as safetensors requires.
    content = save({name: value.detach().cpu().contiguous() for name, value in trainer.state().items()})
    write_atomically(tensors_of(path), content, REMEDY)
    facts = {
        "schema": SCHEMA,
        "identity": identity,
        "epoch": trainer.epoch,
        "step": trainer.step,
        "seconds": trainer.seconds,
        "solver_stats": [stats.sums() for stats in trainer.solver_stats],
        "history": history,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    facts["check"] = _checksum(facts)
    write_atomically(path, json.dumps(facts, indent=1).encode(), REMEDY)
    for later in find_checkpoints(folder):
        if later.stem > path.stem:  # it must be damaged: otherwise this run would have continued from it
            later.unlink(missing_ok=True)
    prune(folder)
    return path


def prune(folder: Path) -> None:
    """Delete all but the newest checkpoints, and whatever a killed process left of others."""
    for old in find_checkpoints(folder)[:-KEPT]:
        old.unlink(missing_ok=True)  # the JSON first: without it the tensors are no checkpoint
    complete = {path.stem for path in find_checkpoints(folder)}
    for path in list(find_checkpoint_files(folder)):
        if path.stem not in complete:
            path.unlink(missing_ok=True)


def load_checkpoint(folder: Path, trainer: Trainer, identity: Json) -> tuple[Json | None, str]:
    """Load the newest undamaged checkpoint into the trainer.

    Returns its history, or None where the folder has no checkpoint, and a note about damaged ones. Raises InputError
    where every checkpoint is damaged, or where one is of another run or another version.
    """
    damaged = []
    for path in reversed(find_checkpoints(folder)):
        found = _read(path)
        if found is None:
            damaged.append(path.name)
            continue
        facts, tensors = found
        own = trainer.state()
        shapes, wanted = ({name: value.shape for name, value in each.items()} for each in (tensors, own))
        if facts.get("schema") == SCHEMA and facts["identity"] != identity:
            difference = _differences(facts["identity"], identity)
            raise InputError(f"{path} is of another run ({difference}); remove it or name another `out=...`")
        if facts.get("schema") != SCHEMA or shapes != wanted:
            raise InputError(f"{path} was made by another version of rkcnn; remove it to start anew")
        with torch.no_grad():
            for name, value in own.items():
                value.copy_(tensors[name])
        trainer.epoch, trainer.step, trainer.seconds = facts["epoch"], facts["step"], facts["seconds"]
        for stats, sums in zip(trainer.solver_stats, facts["solver_stats"], strict=True):
            stats.restore(sums)
        return facts["history"], f"skipped damaged checkpoints: {', '.join(damaged)}" if damaged else ""
    if damaged:
        raise InputError(f"every checkpoint in {folder} is damaged ({', '.join(damaged)}); remove them to start anew")
    return None, ""


def _read(path: Path) -> tuple[Json, dict[str, Tensor]] | None:
    """Read a checkpoint; None if any byte of it has changed since it was written."""
    try:
        facts = json.loads(path.read_bytes())
        check = facts.pop("check")
        content = tensors_of(path).read_bytes()
        if check != _checksum(facts) or facts["sha256"] != hashlib.sha256(content).hexdigest():
            return None
        return facts, load(content)
    except (OSError, ValueError, KeyError, AttributeError, TypeError, SafetensorError):
        return None


def _checksum(facts: Json) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _differences(theirs: Json, ours: Json) -> str:
    names = [name for name in ours if theirs.get(name) != ours[name]]
    return ", ".join(f"{name} {theirs.get(name)} instead of {ours[name]}" for name in names)
