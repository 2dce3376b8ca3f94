"""Checkpoints of a run: tensors as safetensors, everything else as JSON. Loading one runs no code."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from rkcnn.disk import read_file, write_atomically
from rkcnn.error import InputError, shorten
from rkcnn.fit.checkpoint_file import SCHEMA, Json, read_facts, seal_facts
from rkcnn.fit.trainer import Trainer
from rkcnn.run_folder import checkpoint_path, find_checkpoint_files, find_checkpoints, tensors_of
from rkcnn.tensor_header import check_tensor_header

REMEDY = "free some space there or choose another folder"
KEPT = 2  # checkpoints of a run: the newest, and the one before it in case the newest is damaged
_MORE_TENSORS = 1 << 30  # bytes of a checkpoint's tensors beyond what the trainer's own take


def save_checkpoint(folder: Path, trainer: Trainer, identity: Json, history: Json) -> Path:
    """Write a checkpoint and return its JSON file. Every rank must call it; rank 0 writes.

    `identity` names the run, and `history` is whatever the caller wants back from `load_checkpoint`.
    """
    facts = {
        "schema": SCHEMA,
        "identity": identity,
        "epoch": trainer.epoch,
        "step": trainer.step,
        "seconds": trainer.seconds,
        "solver_stats": _average_solver_sums(trainer),
        "history": history,
    }
    return trainer.ranks.from_rank_0(lambda: _write(folder, trainer, facts))


def _average_solver_sums(trainer: Trainer) -> list[list[float]]:
    """Return the totals of each solver, averaged over the ranks, because each rank solves for images of its own."""
    if not trainer.solver_stats:
        return []
    sums = torch.tensor([stats.sums() for stats in trainer.solver_stats], dtype=torch.float64)
    averages: list[list[float]] = (trainer.ranks.sum(sums) / trainer.ranks.world).tolist()
    return averages


def _write(folder: Path, trainer: Trainer, facts: Json) -> Path:
    """Write the tensors, then the JSON file with their checksum, and delete checkpoints that are not needed."""
    path = checkpoint_path(folder, trainer.epoch, trainer.step)
    # Contiguous, as safetensors requires.
    content = save({name: value.detach().cpu().contiguous() for name, value in trainer.state().items()})
    write_atomically(tensors_of(path), content, REMEDY)
    write_atomically(path, seal_facts(facts | {"sha256": hashlib.sha256(content).hexdigest()}), REMEDY)
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


def load_checkpoint(
    folder: Path, trainer: Trainer, identity: Json, check_history: Callable[[Json], object] = dict
) -> tuple[Json | None, str]:
    """Load the newest undamaged checkpoint into the trainer. Every rank must call it; rank 0 reads it for all.

    Without one, every rank gets rank 0's first weights.

    A checkpoint is damaged too if `check_history` raises KeyError, TypeError or ValueError for its history. Returns the
    history, or None where the folder has no checkpoint, and a note about damaged ones. Raises InputError where every
    checkpoint is damaged, or where one is of another run or another version.
    """
    facts, note = trainer.ranks.from_rank_0(lambda: _load_tensors(folder, trainer, identity, check_history))
    trainer.ranks.copy_from_rank_0(trainer.state().values())
    if facts is None:
        return None, note
    trainer.epoch, trainer.step, trainer.seconds = facts["epoch"], facts["step"], facts["seconds"]
    for stats, sums in zip(trainer.solver_stats, facts["solver_stats"], strict=True):
        stats.restore(sums)
    return facts["history"], note


def _load_tensors(
    folder: Path, trainer: Trainer, identity: Json, check_history: Callable[[Json], object]
) -> tuple[Json | None, str]:
    """Copy the tensors of the newest undamaged checkpoint into the trainer; return its JSON file and the note."""
    damaged = []
    own = trainer.state()
    limit = 2 * sum(value.nbytes for value in own.values()) + _MORE_TENSORS
    for path in reversed(find_checkpoints(folder)):
        found = _read(path, limit)
        if found is None:
            damaged.append(path.name)
            continue
        facts, tensors = found
        shapes, wanted = ({name: (value.shape, value.dtype) for name, value in each.items()} for each in (tensors, own))
        if facts["schema"] == SCHEMA and facts["identity"] != identity:
            difference = _differences(facts["identity"], identity)
            raise InputError(f"{path} is of another run ({difference}); remove it or name another `out=...`")
        if facts["schema"] != SCHEMA or shapes != wanted or len(facts["solver_stats"]) != len(trainer.solver_stats):
            raise InputError(f"{path} was made by another version of rkcnn; remove it to start anew")
        try:
            check_history(facts["history"])
        except (KeyError, TypeError, ValueError):
            damaged.append(path.name)
            continue
        with torch.no_grad():
            for name, value in own.items():
                value.copy_(tensors[name])
        return facts, f"skipped damaged checkpoints: {', '.join(damaged)}" if damaged else ""
    if damaged:
        raise InputError(f"every checkpoint in {folder} is damaged ({', '.join(damaged)}); remove them to start anew")
    return None, ""


def _read(path: Path, limit: int) -> tuple[Json, dict[str, Tensor]] | None:
    """Read a checkpoint, whose tensors take at most `limit` bytes.

    Returns None if any byte of it has changed since it was written, or if it holds something else than a checkpoint.
    """
    try:
        facts = read_facts(path)
        content = read_file(tensors_of(path), limit)
        if facts["sha256"] != hashlib.sha256(content).hexdigest():
            return None
        check_tensor_header(BytesIO(content))
        return facts, load(content)
    except (ValueError, KeyError, TypeError, SafetensorError):
        return None


def _differences(theirs: Json, ours: Json) -> str:
    """Return what differs between two runs; of a recipe, the fields alone."""
    found = []
    for name in ours:
        one, two = theirs.get(name), ours[name]
        if isinstance(one, dict) and isinstance(two, dict):
            found += [f"{name} {field}" for field in one | two if one.get(field) != two.get(field)]
        elif one != two:
            found.append(f"{name} {shorten(str(one), 80)} instead of {shorten(str(two), 80)}")
    return ", ".join(found)
