"""How far a run has come, told by what lies in its folder."""

from __future__ import annotations

from pathlib import Path

from rkcnn.error import InputError
from rkcnn.record.result import Result, read_result
from rkcnn.record.run import Run, read_run, recipe_text

NEW, BEGUN = "new", "begun"


def standing(run: Run, out: Path) -> Result | str:
    """Its result, or whether it has begun."""
    folder = out / run.folder
    path = folder / "result.json"
    if path.exists():
        result = read_result(path)
        if read_run(result.run) != run:
            raise InputError(f"{path} is of another run, made by {recipe_text(result.run['recipe'])}; move it away")
        return result
    return BEGUN if any(folder.glob("checkpoint-*.json")) else NEW
