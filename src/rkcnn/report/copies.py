"""Copies of one run that say different things."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.report.view import Found


def note_copies(records: Found) -> Iterator[str]:
    """A sentence for each run of which several records lie below a folder with other errors: the first counts."""
    runs: dict[Run, list[tuple[Path, Result]]] = {}
    for folder, result in records:
        runs.setdefault(result.run, []).append((folder, result))
    for copies in runs.values():
        (first, taken), *rest = copies
        others = [str(folder) for folder, result in rest if _outcome(result) != _outcome(taken)]
        if others:
            word = "is a copy" if len(others) == 1 else "are copies"
            yield (
                f"{', '.join(others)} {word} of the run in {first} with another outcome; the report takes {first}, so "
                "remove the wrong one"
            )


def _outcome(result: Result) -> tuple[str, float | None, float | None]:
    return result.status, result.error, result.error_best
