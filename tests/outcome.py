"""A result and a checkpoint made by hand, for tests that train nothing."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from rkcnn.fit.checkpoint_file import SCHEMA, seal_facts
from rkcnn.fit.recipe import find_recipe
from rkcnn.fit.recipe_changes import read_changes
from rkcnn.record.result import Epoch, Result, Stretch
from rkcnn.record.run import Run
from rkcnn.run_folder import checkpoint_path, tensors_of


def outcome(errors: tuple[float, ...] = (0.5, 0.02, 0.03), **changes: Any) -> Result:
    """A finished run of `mini` with those errors on the held-out images, and anything else changed."""
    recipe = replace(find_recipe("mini"), **read_changes({"epochs": str(max(1, len(errors)))}))
    epochs = tuple(
        Epoch(i, loss=3 * error, training_error=error / 2, lr=recipe.lr_at(i, 0, 1), held_out_error=error)
        for i, error in enumerate(errors)
    )
    made = Result(
        run=Run("mnist-mini", "ResNet@k=4", recipe, 0),
        status="finished",
        error=errors[-1] if errors else None,
        error_best=min(errors, default=None),
        epochs=epochs,
        seconds=65.4,
        images_per_second=1500.0,
        peak_bytes=1 << 28,
        params=1234,
        flops=None,
        paper_flops=None,
        evaluations=None,
        unconverged=None,
        engine="eager",
        engine_note="",
        data={"verified": True},
        versions={"rkcnn": "0"},
        machine={"gpu": None},
        stretches=(Stretch(commit=None, source="0123456789abcdef", hash_version=2, epochs=len(errors)),),
    )
    return replace(made, **changes)


def write_checkpoint(folder: Path, epoch: int, step: int, identity: dict[str, Any], history: dict[str, Any]) -> Path:
    """Write a checkpoint as `fit.checkpoint` does, with tensors that are none; return its JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = checkpoint_path(folder, epoch, step)
    facts = {"schema": SCHEMA, "identity": identity, "epoch": epoch, "step": step, "seconds": 0.0, "solver_stats": []}
    path.write_bytes(seal_facts(facts | {"history": history, "sha256": hashlib.sha256(b"tensors").hexdigest()}))
    tensors_of(path).write_bytes(b"tensors")
    return path
