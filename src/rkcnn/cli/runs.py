"""rkcnn runs: what has been trained."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rkcnn.error import InputError

if TYPE_CHECKING:
    from rkcnn.record.result import Result
    from rkcnn.record.run_state import BegunRun

HEADS = ("data", "network", "recipe", "seed", "error", "best", "epochs", "time", "params", "state")
WORDS = ("data", "network", "recipe", "state")  # columns that start at the left


def runs(*, from_: Path = Path("runs"), json_: Annotated[bool, Parameter(negative=())] = False) -> None:
    """List every run below a folder, also those that are not finished: data, network, recipe, seed, errors, time.

    Parameters
    ----------
    from_
        The folder to look in.
    json_
        Print a JSON list of whole results, of the runs that have one, instead of a table.
    """
    from rkcnn.record.result import Result, find_results
    from rkcnn.record.run_state import find_begun_runs

    if not from_.is_dir():
        raise InputError(f"no folder {from_} here; train something first (rkcnn train) or name another with --from")
    results = [(path.parent, result) for path, result in find_results(from_)]
    found = sorted([*results, *find_begun_runs(from_)], key=lambda pair: pair[0])
    rows = [row_of(run) for _, run in found if not isinstance(run, InputError)]
    if json_:
        known = [
            {"folder": str(folder), **result.as_dict()} for folder, result in results if isinstance(result, Result)
        ]
        print(json.dumps(known, indent=1))
    elif rows:
        print_table(rows)
    else:
        print(f"no results below {from_}")
    for _, trouble in found:
        if isinstance(trouble, InputError):
            print(f"rkcnn: {trouble}", file=sys.stderr)


def row_of(run: Result | BegunRun) -> tuple[str, ...]:
    """The cells below HEADS; one that has begun has no error yet, and says how many of its epochs are done."""
    from rkcnn.cli.summary import clock, percent
    from rkcnn.record.result import Result

    name = (run.run.data, run.run.spec, str(run.run.recipe), str(run.run.seed))
    done = str(len(run.epochs))
    if isinstance(run, Result):
        errors, state = (percent(run.error), percent(run.error_best)), run.status.partition(":")[0]
        return (*name, *errors, done, clock(run.seconds), f"{run.params:,}", state)
    best = min((epoch.held_out_error for epoch in run.epochs), default=None)
    return (*name, "-", percent(best), f"{done} of {run.run.recipe.epochs}", clock(run.seconds), "-", "begun")


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Columns as wide as they need: a log or a pipe cuts nothing off."""
    widths = [max(map(len, column)) for column in zip(HEADS, *rows, strict=True)]
    for row in (HEADS, *rows):
        cells = zip(HEADS, row, widths, strict=True)
        line = (cell.ljust(width) if head in WORDS else cell.rjust(width) for head, cell, width in cells)
        print("  ".join(line).rstrip())
