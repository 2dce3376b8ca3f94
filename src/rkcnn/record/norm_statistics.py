"""The record of what a trained network errs with other running statistics of its batch norms. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rkcnn.disk import read_file
from rkcnn.error import InputError
from rkcnn.json_file import SHORT, Kinds, check_fields, parse_record
from rkcnn.record.result import Result
from rkcnn.record.run import Run, read_run
from rkcnn.run_folder import NORM_STATISTICS

SCHEMA = 1  # the version of the file's shape; a file of another version is not read
KINDS = ("of the run", "shared", "each", "of the batch")
_FIELDS: Kinds = {
    "run": dict,
    **dict.fromkeys(("images", "batches", "hash_version"), int),
    **dict.fromkeys(("device", "source"), str),
    **dict.fromkeys(("wrong", "variances", "versions"), dict),
    "commit": (str, type(None)),
}


@dataclass(frozen=True)
class NormStatistics:
    """How many test images one finished run gets wrong with four kinds of statistics, all with the same weights.

    Those "of the run" are the running averages that it ended with. "shared" and "each" are taken anew over `batches`
    batches of training images: one set for all evaluations of f, and one for each of them. Those "of the batch" are
    each batch of test images' own.
    """

    run: Run
    images: int
    batches: int
    wrong: Mapping[str, int]  # of `images`, by kind
    variances: Mapping[str, list[float]]  # of each norm and evaluation, over their mean; medians over channels
    device: str
    versions: Mapping[str, str]  # rkcnn, torch and python
    commit: str | None
    source: str  # the hash of the code that measured
    hash_version: int  # that the hash was made by

    def error(self, kind: str) -> float:
        """Return the error with one of the KINDS of statistics."""
        return self.wrong[kind] / self.images

    def to_json(self) -> bytes:
        facts = {**asdict(self), "run": self.run.as_dict()}
        return (json.dumps({"schema": SCHEMA, **facts}, indent=1) + "\n").encode()


def read_norm_statistics(folder: Path, run: Run) -> NormStatistics | None:
    """Read and check the record in the folder of this run; None if there is none.

    Raises InputError if it can't be read or is another run's.
    """
    path = folder / NORM_STATISTICS
    if not path.exists():
        return None
    content = read_file(path, SHORT)
    try:
        facts = parse_record(content, "record", SCHEMA)
        check_fields("record", facts, _FIELDS, known=set(_FIELDS))
        check_fields("versions", facts["versions"], dict.fromkeys(facts["versions"], str))
        check_fields("numbers of wrong answers", facts["wrong"], dict.fromkeys(KINDS, int), known=set(KINDS))
        found = NormStatistics(**{**facts, "run": read_run(facts["run"])})
        _check_values(found, run)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{path} can't be read as a record of norms' statistics: {error}; remove it and measure again"
        ) from None
    return found


def find_norm_statistics(
    records: Iterable[tuple[Path, Result]],
) -> tuple[list[NormStatistics], list[InputError]]:
    """Read those of all runs that have some, each with its folder; return them, and an error for each bad record."""
    found: list[NormStatistics] = []
    unreadable = []
    for folder, result in records:
        try:
            found += filter(None, [read_norm_statistics(folder, result.run)])
        except InputError as error:
            unreadable.append(error)
    return found, unreadable


def _check_values(record: NormStatistics, run: Run) -> None:
    """Raise ValueError unless the numbers are possible ones of this run."""
    if record.run != run:
        raise ValueError("it is of another run than the result beside it")
    if record.images < 1 or not all(0 <= wrong <= record.images for wrong in record.wrong.values()):
        raise ValueError("it must have some images and count from none to all of them as wrong")
    variances: Any = record.variances
    if not all(isinstance(each, list) and all(type(v) in (int, float) for v in each) for each in variances.values()):
        raise ValueError("its variances must be lists of numbers")
