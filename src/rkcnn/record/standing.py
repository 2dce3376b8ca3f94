"""How far a run has come, told by what lies in its folder."""

from __future__ import annotations

from pathlib import Path

from rkcnn.error import InputError
from rkcnn.record.result import Result, read_result
from rkcnn.record.run import Run
from rkcnn.run_folder import RESULT, find_checkpoints

NEW, BEGUN = "new", "begun"


def standing(run: Run, out: Path, store: Path | None = None) -> Result | str:
    """Its result, or whether it has begun; checkpoints may lie in a store, too."""
    folder = out / run.folder
    path = folder / RESULT
    try:
        if path.exists():
            result = read_result(path)
            if result.run != run:
                raise InputError(f"{path} is of another run, made by {result.run.recipe}; move it away")
            return result
        places = (out,) if store is None else (out, store)
        return BEGUN if any(find_checkpoints(place / run.folder) for place in places) else NEW
    except OSError as error:
        raise InputError(f"{folder} can't be looked into: {error.strerror}; name another --out") from None
