"""What came of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rkcnn.error import InputError


@dataclass(frozen=True)
class Result:
    """Errors are fractions, seconds and bytes bare. `error` is the last epoch's, `error_best` the lowest of all."""

    run: dict[str, Any]  # data, spec, recipe, seed
    status: str  # finished, or diverged: ...
    error: float | None
    error_best: float | None
    epochs: list[dict[str, Any]]
    seconds: float
    images_per_second: float
    peak_bytes: int
    params: int
    evaluations: float | None  # of f a solve, where the data decides
    unconverged: float | None  # share of solves
    engine: str
    data: dict[str, Any]  # checksums, and whether they are the published ones
    versions: dict[str, str]
    machine: dict[str, Any]
    commit: str | None
    source: str
    flops: int | None = None  # 2 x MAC of one image; None in records from before it was counted
    paper_flops: int | None = None  # in the paper's convention, where it has one

    @property
    def finished(self) -> bool:
        return self.status == "finished"

    def to_json(self) -> bytes:
        return (json.dumps(asdict(self), indent=1) + "\n").encode()


def read_result(path: Path) -> Result:
    """A result from its file."""
    try:
        return Result(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} can't be read as a result: {error}; remove it and train again") from None


def find_results(folder: Path) -> Iterator[tuple[Path, Result | InputError]]:
    """Every result below a folder, in order of their names; one that can't be read is the reason why."""
    for path in sorted(folder.rglob("result.json")):
        try:
            yield path, read_result(path)
        except InputError as error:
            yield path, error
