"""Runs that have begun and not ended, told by their checkpoints. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rkcnn.error import InputError
from rkcnn.record.result import check_progress


class Begun(NamedTuple):
    run: dict[str, Any]  # data, spec, recipe, seed
    epochs: list[dict[str, Any]]  # those that are done
    seconds: float


def find_begun(folder: Path) -> Iterator[tuple[Path, Begun | InputError]]:
    """Every run below a folder with a checkpoint and no result, in order of their names."""
    for place in sorted({path.parent for path in folder.rglob("checkpoint-*.json")}):
        if not (place / "result.json").exists():
            yield place, _read(place)


def _read(place: Path) -> Begun | InputError:
    """From the newest checkpoint that can be read; the reason if none can."""
    for path in sorted(place.glob("checkpoint-*.json"), reverse=True):
        try:
            facts = json.loads(path.read_bytes())
            run = {name: facts["identity"][name] for name in ("data", "spec", "recipe", "seed")}
            check_progress(run, facts["history"])
            return Begun(run, facts["history"], sum(epoch["seconds"] for epoch in facts["history"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return InputError(f"no checkpoint in {place} can be read; remove them to start anew")
