"""The record of what a trained network errs with other running statistics of its batch norms. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rkcnn.disk import MissingFile, read_file
from rkcnn.error import InputError
from rkcnn.json_file import SHORT, Kinds, check_fields, parse_record
from rkcnn.record.result import Result, check_run
from rkcnn.record.run import Run
from rkcnn.run_folder import ERRORS_BY_STATISTICS

SCHEMA = 1  # the version of the file's shape; a file of another version is not read
OF_THE_RUN, SHARED, EACH, OF_THE_BATCH = KINDS = ("of the run", "shared", "each", "of the batch")
OTHER_ROUNDING = 3e-3  # by which an error in float32 may differ from that of the run, in its own precision
_FIELDS: Kinds = {
    **dict.fromkeys(("run", "wrong", "variances", "versions"), dict),
    **dict.fromkeys(("images", "batches", "hash_version"), int),
    **dict.fromkeys(("device", "source", "note"), str),
    "commit": (str, type(None)),
}


@dataclass(frozen=True)
class ErrorsByStatistics:
    """How many test images one finished run gets wrong with four kinds of statistics, all with the same weights.

    Those "of the run" are the running averages that it ended with. "shared" and "each" are taken anew over `batches`
    batches of training images: one set for all evaluations of f, and one for each of them. Those "of the batch" are
    each batch of test images' own. All of it is computed in float32.
    """

    run: Run
    images: int  # all that the run's error was counted on
    batches: int
    wrong: Mapping[str, int]  # of `images`, by kind
    variances: Mapping[str, list[float]]  # of each norm and evaluation, over their mean; medians over channels
    device: str
    versions: Mapping[str, str]  # rkcnn, torch and python
    commit: str | None
    source: str  # the hash of the code that trains the network, as it was when this was measured
    hash_version: int  # that the hash was made by
    note: str = ""

    def error(self, kind: str) -> float:
        """Return the error with one of the KINDS of statistics."""
        return self.wrong[kind] / self.images

    def to_json(self) -> bytes:
        """Return the content of the file; raises ValueError if a number is not finite, which no reader takes."""
        facts = {**asdict(self), "run": self.run.as_dict()}
        return (json.dumps({"schema": SCHEMA, **facts}, indent=1, allow_nan=False) + "\n").encode()


def read_errors_by_statistics(folder: Path, result: Result) -> ErrorsByStatistics | None:
    """Read and check the record beside a result; None if there is none.

    Raises InputError if it can't be read, or is not of the run and the weights of that result.
    """
    path = folder / ERRORS_BY_STATISTICS
    try:
        content = read_file(path, SHORT)
    except MissingFile:
        if not path.is_symlink():
            return None
        raise
    try:
        facts = parse_record(content, "record", SCHEMA)
        check_fields("record", facts, _FIELDS, known=set(_FIELDS))
        check_fields("record's versions", facts["versions"], dict.fromkeys(facts["versions"], str))
        check_fields("record's wrong answers", facts["wrong"], dict.fromkeys(KINDS, int), known=set(KINDS))
        check_fields("record's variances", facts["variances"], dict.fromkeys(facts["variances"], list))
        found = ErrorsByStatistics(**{**facts, "run": check_run(facts["run"])})
        _check_values(found, result)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{path} can't be read as a record of errors by statistics: {error}; remove it and measure again"
        ) from None
    return found


def find_errors_by_statistics(
    records: Iterable[tuple[Path, Result]],
) -> tuple[list[ErrorsByStatistics], list[InputError]]:
    """Read the records of all runs that have one; return them, and an error for each that can't be used."""
    found: list[ErrorsByStatistics] = []
    unreadable = []
    for folder, result in records:
        try:
            found += filter(None, [read_errors_by_statistics(folder, result)])
        except InputError as error:
            unreadable.append(error)
    return found, unreadable


def _check_values(record: ErrorsByStatistics, result: Result) -> None:
    """Raise ValueError unless the numbers are possible ones, and fit the result."""
    if record.run != result.run:
        raise ValueError("it is of another run than the result beside it")
    if record.batches < 1 or record.images < 1:
        raise ValueError("it must have at least one batch and one image")
    if record.images != result.data.get("held_out_images", record.images):
        raise ValueError(f"it has {record.images:,} images, and the result {result.data['held_out_images']:,}")
    if not all(0 <= wrong <= record.images for wrong in record.wrong.values()):
        raise ValueError("it must count from none to all of its images as wrong")
    if result.error is None or abs(record.error(OF_THE_RUN) - result.error) > OTHER_ROUNDING:
        raise ValueError(
            f"with the run's own averages it has an error of {record.error(OF_THE_RUN):.4f}, and the result "
            f"{result.error}, so it is of other weights"
        )
    if not all(type(value) in (int, float) for values in record.variances.values() for value in values):
        raise ValueError("its variances must be lists of numbers")
