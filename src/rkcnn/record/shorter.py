"""A finished run that a longer one can go on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from rkcnn.error import InputError
from rkcnn.record.result import find_results
from rkcnn.record.run import Run


class Shorter(NamedTuple):
    folder: Path
    run: dict[str, Any]


def find_shorter(run: Run, folder: Path) -> Shorter | None:
    """The longest finished run that is `run` but for fewer epochs; only `steps` schedules begin alike."""
    if run.recipe.schedule != "steps":
        return None
    found: dict[int, Shorter] = {}
    for path, result in find_results(folder.parent.parent):
        if isinstance(result, InputError):
            continue
        epochs = result.run["recipe"]["epochs"]
        same = {**run.as_dict(), "recipe": {**run.as_dict()["recipe"], "epochs": epochs}}
        if result.finished and result.run == same and epochs < run.recipe.epochs:
            found[epochs] = Shorter(path.parent, result.run)
    return found[max(found)] if found else None
