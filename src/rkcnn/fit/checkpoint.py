"""A run kept on disk so that nothing is lost: safetensors for the numbers, JSON for the rest; loading runs no code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from rkcnn.disk import write_whole
from rkcnn.error import InputError
from rkcnn.fit.trainer import Trainer
from rkcnn.run_folder import checkpoint_path, find_checkpoint_files, find_checkpoints, tensors_of

REMEDY = "free some space there or name another --out"
KEPT = 2  # the newest and the one before, should the newest be damaged


def state_of(trainer: Trainer) -> dict[str, Tensor]:
    """Everything a step changes, by name; contiguous views of nothing, as safetensors wants them."""
    names = [name for name, _ in trainer.network.named_parameters()]
    found: dict[str, Tensor] = {f"network.{name}": value for name, value in trainer.network.state_dict().items()}
    found |= {f"momentum.{name}": value for name, value in zip(names, trainer.sgd.buffers, strict=True)}
    found |= {f"average.{name}": value for name, value in zip(names, trainer.averaged, strict=False)}
    return found | {"totals": trainer.totals}


def keep(folder: Path, trainer: Trainer, identity: dict[str, Any], history: list[dict[str, Any]]) -> Path:
    """Write a checkpoint; the JSON is renamed last and vouches for the tensors by their checksum."""
    path = checkpoint_path(folder, trainer.epoch, trainer.step)
    content = save({key: value.detach().cpu().contiguous() for key, value in state_of(trainer).items()})
    write_whole(tensors_of(path), content, REMEDY)
    facts = {
        "identity": identity,
        "epoch": trainer.epoch,
        "step": trainer.step,
        "seconds": trainer.seconds,
        "tallies": [tally.sums() for tally in trainer.tallies],
        "history": history,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    facts["check"] = _check(facts)
    write_whole(path, json.dumps(facts, indent=1).encode(), REMEDY)
    for later in find_checkpoints(folder):
        if later.stem > path.stem:  # damaged, else this run had gone on from there
            later.unlink(missing_ok=True)
    prune(folder)
    return path


def prune(folder: Path) -> None:
    """Leave the newest checkpoints, and nothing of others or of what a kill in the midst of writing left behind."""
    for old in find_checkpoints(folder)[:-KEPT]:
        old.unlink(missing_ok=True)  # the JSON first: without it the tensors are no checkpoint
    whole = {path.stem for path in find_checkpoints(folder)}
    for path in list(find_checkpoint_files(folder)):
        if path.stem not in whole:
            path.unlink(missing_ok=True)


def resume(folder: Path, trainer: Trainer, identity: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Put the newest sound checkpoint into the trainer; its history, and a line about any that was damaged."""
    damaged = []
    for path in reversed(find_checkpoints(folder)):
        found = _read(path)
        if found is None:
            damaged.append(path.name)
            continue
        facts, tensors = found
        if facts["identity"] != identity:
            raise InputError(
                f"{path} is of another run ({_differences(facts['identity'], identity)}); "
                "name another --out or remove it"
            )
        own = state_of(trainer)
        if {name: value.shape for name, value in own.items()} != {name: value.shape for name, value in tensors.items()}:
            raise InputError(f"{path} was made by another version of rkcnn; give --again to start anew")
        with torch.no_grad():
            for name, value in own.items():
                value.copy_(tensors[name])
        trainer.epoch, trainer.step, trainer.seconds = facts["epoch"], facts["step"], facts["seconds"]
        for tally, sums in zip(trainer.tallies, facts["tallies"], strict=True):
            tally.restore(sums)
        return facts["history"], f"damaged, passed over: {', '.join(damaged)}" if damaged else ""
    if damaged:
        raise InputError(f"every checkpoint in {folder} is damaged ({', '.join(damaged)}); remove them to start anew")
    return [], ""


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """None if anything about it is not as it was written."""
    try:
        facts = json.loads(path.read_bytes())
        check = facts.pop("check")
        content = tensors_of(path).read_bytes()
        if check != _check(facts) or facts["sha256"] != hashlib.sha256(content).hexdigest():
            return None
        return facts, load(content)
    except (OSError, ValueError, KeyError, AttributeError, TypeError, SafetensorError):
        return None


def _check(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _differences(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    names = [name for name in ours if theirs.get(name) != ours[name]]
    return ", ".join(f"{name} {theirs.get(name)} instead of {ours[name]}" for name in names)
