"""What came of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rkcnn.error import InputError
from rkcnn.fit.epoch import TrainingEpoch
from rkcnn.record.run import Run, read_run
from rkcnn.run_folder import RESULT

Kinds = Mapping[str, type | tuple[type, ...]]

NUMBER = (int, float)
MAYBE = (int, float, type(None))
RUN_FIELDS: Kinds = {"data": str, "spec": str, "recipe": dict, "seed": int}
RECIPE_FIELDS: Kinds = {"name": str, "epochs": int, "precision": str}
EPOCH_FIELDS: Kinds = {"number": int, "loss": NUMBER, "error": NUMBER, "lr": NUMBER, "test_error": NUMBER}
RESULT_FIELDS: Kinds = {
    "run": dict,
    "status": str,
    "error": MAYBE,
    "error_best": MAYBE,
    "epochs": list,
    "seconds": NUMBER,
    "images_per_second": NUMBER,
    "peak_bytes": int,
    "params": int,
    "data": dict,
    "engine": str,
    "versions": dict,
    "machine": dict,
    "commit": (str, type(None)),
    "source": str,
}
MOST = 1e18  # of any count or time; what is beyond was not counted
LATER: Kinds = {"flops": (int, type(None)), "paper_flops": (int, type(None))}  # may be missing in older records


@dataclass(frozen=True, kw_only=True)
class Epoch(TrainingEpoch):
    """An epoch with the error of the held-out images after it, and the hash of the source that computed it."""

    test_error: float
    source: str | None = None  # None in records from before it was kept


@dataclass(frozen=True)
class Result:
    """Errors are fractions, seconds and bytes bare. `error` is the last epoch's, `error_best` the lowest of all."""

    run: Run
    status: str  # finished, or diverged: ...
    error: float | None
    error_best: float | None
    epochs: tuple[Epoch, ...]
    seconds: float
    images_per_second: float
    peak_bytes: int  # of the device or process, with all runs that were side by side there
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
    """Read and check a result file; raises InputError unless it holds everything that readers rely on."""
    try:
        facts = json.loads(path.read_bytes())
        check_kinds("result", facts, RESULT_FIELDS)
        check_kinds("result", facts, {name: kind for name, kind in LATER.items() if name in facts})
        run, epochs = read_progress(facts["run"], facts["epochs"])
        result = Result(**{**_check_names(facts), "run": run, "epochs": epochs})
        _check_values(result)
        return result
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} can't be read as a result of rkcnn: {error}; move it away") from None


def _check_names(facts: dict[str, Any]) -> dict[str, Any]:
    """TypeError unless the fields are a result's."""
    known = {each.name: each.default is MISSING for each in fields(Result)}
    for name, needed in known.items():
        if needed and name not in facts:
            raise TypeError(f"the result has no {name}")
    for name in facts:
        if name not in known:
            raise TypeError(f"the result has {name}, which this version doesn't know")
    return facts


def _check_values(result: Result) -> None:
    """ValueError unless numbers are what they can be: a finished run's errors fractions, the best no worse.

    The loss of a run that diverged may be anything.
    """
    best, last = result.error_best, result.error
    if result.finished and not (best is not None and last is not None and 0 <= best <= last <= 1):
        raise ValueError(f"the error is {last}, and {best} at best")
    for name, low in (("params", 1), ("flops", 1), ("paper_flops", 0), ("seconds", 0), ("images_per_second", 0)):
        value = getattr(result, name)
        if value is not None and not low <= value <= MOST:
            raise ValueError(f"the run's {name} is not a number from {low} to {MOST:g}")
    for epoch in result.epochs:
        if not 0 <= epoch.test_error <= 1:
            raise ValueError(f"the test error of epoch {epoch.number} is {epoch.test_error}")
    if not isinstance(result.machine.get("gpu"), str | None):
        raise TypeError(f"the machine's gpu is of type {type(result.machine['gpu']).__name__}")


def read_progress(run: Any, epochs: Any) -> tuple[Run, tuple[Epoch, ...]]:
    """A run and its epochs so far from their JSON; raises TypeError or ValueError if they are something else."""
    check_kinds("run", run, RUN_FIELDS)
    check_kinds("recipe", run["recipe"], RECIPE_FIELDS)
    known = {field.name for field in fields(Epoch)}
    for epoch in epochs:
        check_kinds("epoch", epoch, EPOCH_FIELDS)
        for name in epoch:
            if name not in known:
                raise TypeError(f"an epoch has {name}, which this version doesn't know")
    return read_run(run), tuple(Epoch(**epoch) for epoch in epochs)


def check_kinds(what: str, facts: Any, kinds: Kinds) -> None:
    """TypeError if a record lacks a field, or has one of another kind."""
    if not isinstance(facts, dict):
        raise TypeError(f"the {what} is of type {type(facts).__name__}")
    for name, kind in kinds.items():
        if name not in facts:
            raise TypeError(f"the {what} has no {name}")
        if not isinstance(facts[name], kind):
            raise TypeError(f"the {what}'s {name} is of type {type(facts[name]).__name__}")


def find_results(folder: Path) -> Iterator[tuple[Path, Result | InputError]]:
    """Every result below a folder, in order of their names; one that can't be read is the reason why."""
    for path in sorted(folder.rglob(RESULT)):
        try:
            yield path, read_result(path)
        except InputError as error:
            yield path, error
