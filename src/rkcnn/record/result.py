"""The result of a run, the file that it is kept in, and the results that a user names by their folders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rkcnn.data.options import read_own_options
from rkcnn.disk import read_file
from rkcnn.error import InputError
from rkcnn.fit.epoch import TrainingEpoch
from rkcnn.json_file import LONG, Kinds, check_fields, parse_record
from rkcnn.record.run import Run, read_run
from rkcnn.record.source import Source, is_current_code
from rkcnn.run_folder import RESULT, find_named

SCHEMA = 3  # the version of the file's shape; a file of another version is not read
LARGEST = 1e18  # of any count or time; a larger one can't be right

_NUMBER = (int, float)
_NUMBER_OR_NONE = (int, float, type(None))
_COUNT_OR_NONE = (int, type(None))
_TEXT_OR_NONE = (str, type(None))
_RUN_FIELDS: Kinds = {"data": str, "network": str, "recipe": dict, "seed": int}
_RECIPE_FIELDS: Kinds = {"name": str, "epochs": int, "precision": str}
_EPOCH_FIELDS: Kinds = {
    "number": int,
    **dict.fromkeys(("loss", "training_error", "lr", "held_out_error", "seconds"), _NUMBER),
    "images": int,
}
_SOLVER_FIELDS: Kinds = dict.fromkeys(("unconverged", "evaluations", "backward_evaluations"), _NUMBER_OR_NONE)
_STRETCH_FIELDS: Kinds = {"epochs": int, "commit": _TEXT_OR_NONE, "source": str, "hash_version": int}
_RESULT_FIELDS: Kinds = {
    **dict.fromkeys(("status", "engine", "engine_note"), str),
    **dict.fromkeys(("run", "data", "versions", "machine"), dict),
    **dict.fromkeys(("epochs", "stretches", "notes"), list),
    **dict.fromkeys(("seconds", "images_per_second"), _NUMBER),
    **dict.fromkeys(("error", "error_best", "evaluations", "unconverged"), _NUMBER_OR_NONE),
    **dict.fromkeys(("peak_bytes", "params"), int),
    **dict.fromkeys(("flops", "paper_flops"), _COUNT_OR_NONE),
}
_DATA_FIELDS: Kinds = {
    "verified": bool,
    **dict.fromkeys(("train_sha256", "train_labels_sha256", "test_sha256", "test_labels_sha256"), str),
    "held_out_images": int,
    "classes": list,
    "own": dict,
    "constant_error": _NUMBER_OR_NONE,
    "init_from": str,
}
_MACHINE_FIELDS: Kinds = {
    **dict.fromkeys(("system", "processor", "gpu"), _TEXT_OR_NONE),
    **dict.fromkeys(("threads", "ranks", "together"), _COUNT_OR_NONE),
}


@dataclass(frozen=True, kw_only=True)
class Epoch(TrainingEpoch):
    """An epoch of training with the error on the held-out images after it."""

    held_out_error: float  # on the test images or, with a validation split, on the validation images


@dataclass(frozen=True)
class Stretch(Source):
    """Consecutive epochs computed by one version of the code; an epoch belongs to the version that finished it."""

    epochs: int


@dataclass(frozen=True)
class Result:
    """The result of a run. Errors are fractions, times are in seconds, sizes in bytes."""

    run: Run
    status: str  # "finished", or "diverged: " and the reason
    error: float | None  # on the held-out images, after the last epoch
    error_best: float | None  # the lowest of all epochs, so chosen by looking at the held-out images
    epochs: tuple[Epoch, ...]
    seconds: float  # of training steps
    images_per_second: float  # trained on, per second of training steps
    peak_bytes: int  # the most used since these runs started on the GPU or, on a CPU, since the process started
    params: int
    flops: int | None  # 2 x MAC of one image; None where they were not counted
    paper_flops: int | None  # as the paper counts, where it does
    evaluations: float | None  # of f or of stage networks in a forward pass; a mean where the data decides how many
    unconverged: float | None  # share of solves that did not converge
    engine: str  # that really ran: eager, compile, graph or fused
    engine_note: str  # why it was not a faster one; empty where there is nothing to say
    data: dict[str, Any]  # checksums, if as published, classes, own images' options, error of one answer, first weights
    versions: dict[str, str]
    machine: dict[str, Any]
    stretches: tuple[Stretch, ...]  # which code computed which epochs; the last one also wrote this result
    notes: tuple[str, ...] = ()  # added by hand afterwards: what was corrected, and what is known of this run

    @property
    def finished(self) -> bool:
        """Whether the run went through all its epochs, and did not diverge."""
        return self.status == "finished"

    @property
    def best_epoch(self) -> int | None:
        """The number, counted from 1, of the first epoch with the lowest error."""
        errors = [epoch.held_out_error for epoch in self.epochs]
        return errors.index(min(errors)) + 1 if errors else None

    @property
    def commit(self) -> str | None:
        """The commit that the run ended with; `stretches` has those before it."""
        return self.stretches[-1].commit

    @property
    def source(self) -> str:
        """The hash of the code that the run ended with; `stretches` has those before it."""
        return self.stretches[-1].source

    def as_dict(self) -> dict[str, Any]:
        """Return the result as its file holds it."""
        return json.loads(json.dumps({"schema": SCHEMA, **asdict(self)}))

    def to_json(self) -> bytes:
        return (json.dumps(self.as_dict(), indent=1) + "\n").encode()


def find_other_code(stretches: Iterable[Stretch], network: str) -> tuple[Stretch, ...]:
    """Return the stretches that were computed by a different version of the code than this one."""
    return tuple(each for each in stretches if not is_current_code(each.source, network))


def read_result(path: Path) -> Result:
    """Read and check a result file; raises InputError unless it holds everything that readers rely on."""
    return parse_result(read_file(path, LONG), path)


def parse_result(content: bytes | str, path: Path) -> Result:
    """Return the result that JSON describes, checked as `read_result` does; `path` is the file that holds it."""
    try:
        facts = parse_record(content, "result", SCHEMA)
        check_fields("result", facts, _RESULT_FIELDS, known=_names(Result))
        run, epochs, stretches = read_progress(facts["run"], facts["epochs"], facts["stretches"])
        result = Result(
            **{**facts, "run": run, "epochs": epochs, "stretches": stretches, "notes": tuple(facts["notes"])}
        )
        _check_values(result)
        _check_origin(result)
        return result
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} can't be read as a result of rkcnn: {error}; move it away") from None


def read_progress(run: Any, epochs: Any, stretches: Any) -> tuple[Run, tuple[Epoch, ...], tuple[Stretch, ...]]:
    """Read a run, its epochs so far and who computed them from JSON; raises TypeError or ValueError if they are not."""
    owner = check_run(run)
    check_fields("history", {"epochs": epochs, "stretches": stretches}, {"epochs": list, "stretches": list})
    for epoch in epochs:
        check_fields("epoch", epoch, _EPOCH_FIELDS, known=_names(Epoch), optional=_SOLVER_FIELDS)
    for stretch in stretches:
        check_fields("stretch", stretch, _STRETCH_FIELDS, known=_names(Stretch))
    found = owner, tuple(Epoch(**epoch) for epoch in epochs), tuple(Stretch(**each) for each in stretches)
    _check_progress(*found[1:])
    return found


def check_run(facts: Any) -> Run:
    """Read a run from JSON; raises TypeError or ValueError if it is none."""
    check_fields("run", facts, _RUN_FIELDS)
    check_fields("recipe", facts["recipe"], _RECIPE_FIELDS)
    if not facts["network"].strip():
        raise ValueError("the run's network has no name")
    return read_run(facts)


def _names(record: type[Any]) -> set[str]:
    return {each.name for each in fields(record)}


def _check_values(result: Result) -> None:
    """Raise ValueError unless the numbers are possible ones. The loss of a run that diverged may be anything."""
    best, last = result.error_best, result.error
    if result.finished and not (best is not None and last is not None and 0 <= best <= last <= 1):
        raise ValueError(f"the error is {last}, and {best} at best")
    if not result.finished and not result.status.startswith("diverged"):
        raise ValueError(f"the status is {result.status}, neither finished nor diverged")
    for name in ("params", "flops", "paper_flops", "seconds", "images_per_second", "peak_bytes", "evaluations"):
        low, value = int(name in ("params", "flops")), getattr(result, name)
        if value is not None and not low <= value <= LARGEST:
            raise ValueError(f"the run's {name} is not a number from {low} to {LARGEST:g}")
    if not result.stretches:
        raise ValueError("it has no stretches, which say what code computed it")
    if result.finished and result.epochs:  # the record in a weight file has none
        _check_against_epochs(result)


def _check_against_epochs(result: Result) -> None:
    """Raise ValueError unless a finished run has every epoch of its recipe and its errors are those of its epochs."""
    errors = [epoch.held_out_error for epoch in result.epochs]
    wanted = result.run.recipe.epochs
    if len(errors) != wanted:
        raise ValueError(f"the run is finished with {len(errors)} epochs, and its recipe has {wanted}")
    if result.error != errors[-1]:
        raise ValueError(f"the error is {result.error}, and that of the last epoch {errors[-1]}")
    if result.error_best != min(errors):
        raise ValueError(f"the error is {result.error_best} at best, and the lowest of an epoch {min(errors)}")


def _check_progress(epochs: tuple[Epoch, ...], stretches: tuple[Stretch, ...]) -> None:
    """Raise ValueError unless the numbers of the epochs so far are possible ones."""
    for epoch in epochs:
        if not 0 <= epoch.held_out_error <= 1:
            raise ValueError(f"the held-out error of epoch {epoch.number} is {epoch.held_out_error}")
        if not all(0 <= value <= LARGEST for value in (epoch.number, epoch.images, epoch.seconds)):
            raise ValueError(f"the number, images or seconds of epoch {epoch.number} are no number up to {LARGEST:g}")
    parts = [each.epochs for each in stretches]
    if min(parts, default=0) < 0 or sum(parts) != len(epochs):
        raise ValueError(f"the stretches don't add up to its {len(epochs)} epochs")


def _check_origin(result: Result) -> None:
    """Raise TypeError or ValueError unless its images, its machine, its versions and its notes are described soundly.

    Every field of the images and the machine may be missing, as in older records.
    """
    check_fields("data", result.data, {}, optional=_DATA_FIELDS)
    check_fields("machine", result.machine, {}, optional=_MACHINE_FIELDS)
    check_fields("versions", result.versions, dict.fromkeys(result.versions, str))
    for what, texts in (("classes", result.data.get("classes", ["0"])), ("notes", result.notes)):
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"the {what} are not all text")
    if not result.data.get("classes", ["0"]):
        raise ValueError("the data has no classes")
    read_own_options(result.data.get("own", {}))


def find_results(folder: Path) -> Iterator[tuple[Path, Result | InputError]]:
    """Yield every result file below a folder, sorted by name, with its result or the reason why it can't be read."""
    for path in find_named(folder, RESULT):
        try:
            yield path, read_result(path)
        except InputError as error:
            yield path, error


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
