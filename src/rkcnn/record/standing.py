"""How far a run has come, told by what lies in its folder."""

from __future__ import annotations

from pathlib import Path

from rkcnn.record.result import Result, read_result
from rkcnn.record.run import Run

NEW, BEGUN = "new", "begun"


def standing(run: Run, out: Path) -> Result | str:
    """Its result, or whether it has begun."""
    folder = out / run.folder
    if (folder / "result.json").exists():
        return read_result(folder / "result.json")
    return BEGUN if any(folder.glob("checkpoint-*.json")) else NEW
