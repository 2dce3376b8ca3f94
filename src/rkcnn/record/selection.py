"""The results that a user names by their folders. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rkcnn.error import InputError
from rkcnn.record.result import Result, find_results
from rkcnn.run_folder import RESULT

REMEDY = "name the folders of finished runs, or a folder that holds some"


def select_results(paths: Iterable[Path]) -> tuple[list[tuple[Path, Result]], list[InputError]]:
    """Return the results below these folders, each once with its folder, and an error for each that can't be read.

    A path is a run's folder, its result.json, or a folder with any number of runs. Runs that are not finished have no
    result and are left out. Raises InputError if a path has none at all.
    """
    found: dict[Path, Result] = {}
    unreadable: dict[Path, InputError] = {}
    for path in paths:
        folder = path.parent if path.name == RESULT else path
        if not folder.is_dir():
            raise InputError(f"no folder {folder} here; {REMEDY}")
        below = list(find_results(folder))
        if not below:
            raise InputError(f"{folder} holds no {RESULT}; {REMEDY}")
        for file, result in below:
            if isinstance(result, InputError):
                unreadable[file] = result
            else:
                found.setdefault(file.parent, result)
    if not found:
        raise next(iter(unreadable.values()), InputError(f"no runs given; {REMEDY}"))
    return list(found.items()), list(unreadable.values())
