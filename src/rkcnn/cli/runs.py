"""rkcnn runs: lists what was trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rkcnn.cli.output import print_error, print_line
from rkcnn.error import InputError
from rkcnn.escape import escape_text

if TYPE_CHECKING:
    from rkcnn.record.result import Result
    from rkcnn.record.run_state import BegunRun

NAMES = ("data", "network", "recipe", "precision", "seed")
COLUMNS = (*NAMES, "error", "best*", "epochs", "time", "params", "state", "folder")
LEFT_ALIGNED = ("data", "network", "recipe", "precision", "state", "folder")


def runs(
    *, from_: Path = Path("runs"), json_: Annotated[bool, Parameter(negative=(), show_default=False)] = False
) -> int:
    """List every run below a folder with its errors and where it is, also those that are not finished.

    Returns the exit code: 1 if a run or its newest checkpoint can't be read, which is named on standard error.

    Parameters
    ----------
    from_
        The folder to look in.
    json_
        Print the complete results, of the runs that have one, as a JSON list instead of a table.
    """
    from rkcnn.record.result import Result, find_results
    from rkcnn.record.run_state import find_begun_runs

    if not from_.is_dir():
        raise InputError(f"no folder {from_} here; train something first (rkcnn train) or name another with --from")
    results = [(path.parent, result) for path, result in find_results(from_)]
    found = sorted([*results, *find_begun_runs(from_)], key=lambda pair: pair[0])
    readable = [run for _, run in found if not isinstance(run, InputError)]
    folders = [str(folder) for folder, run in found if not isinstance(run, InputError)]
    if json_:
        whole = [
            {"folder": str(folder), **result.as_dict()} for folder, result in results if isinstance(result, Result)
        ]
        print(json.dumps(whole, indent=1))
    elif readable:
        print_table([(*row_of(run), folder) for run, folder in zip(readable, folders, strict=True)])
        kinds = {run.run.held_out for run in readable}
        chosen = f"the {kinds.pop()} set" if len(kinds) == 1 else "the test set (~validation-N: the validation set)"
        print_line(f"* the lowest error of any epoch, chosen on {chosen}")
    else:
        print_line(f"no results below {from_}")
    troubles = [trouble for _, run in found for trouble in list_troubles(run)]
    for trouble in troubles:
        print_error(str(trouble))
    return 1 if troubles else 0


def list_troubles(run: Result | BegunRun | InputError) -> list[InputError]:
    """Return why a run can't be read, or which of its newest checkpoints can't be, so that it seems less far."""
    from rkcnn.record.result import Result

    if isinstance(run, InputError):
        return [run]
    return [
        InputError(
            f"{path} or its tensors are damaged; the checkpoint before it is shown, and training continues there"
        )
        for path in (() if isinstance(run, Result) else run.damaged)
    ]


def row_of(run: Result | BegunRun) -> tuple[str, ...]:
    """Return the cells below COLUMNS, all but the folder; a run that is not finished has no error."""
    from rkcnn.record.result import Result
    from rkcnn.use.progress import clock, percent

    name = (run.run.data, run.run.network, str(run.run.recipe), run.run.recipe.precision, str(run.run.seed))
    done = str(len(run.epochs))
    if isinstance(run, Result):
        errors, state = (percent(run.error), percent(run.error_best)), run.status.partition(":")[0]
        return (*name, *errors, done, clock(run.seconds), f"{run.params:,}", state)
    best = min((epoch.held_out_error for epoch in run.epochs), default=None)
    return (*name, "-", percent(best), f"{done} of {run.run.recipe.epochs}", clock(run.seconds), "-", "begun")


def print_table(rows: list[tuple[str, ...]]) -> None:
    """Print columns as wide as their content, so that nothing is cut off in a log or a pipe."""
    rows = [tuple(map(escape_text, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    for row in (COLUMNS, *rows):
        cells = zip(COLUMNS, row, widths, strict=True)
        line = (cell.ljust(width) if head in LEFT_ALIGNED else cell.rjust(width) for head, cell, width in cells)
        print_line("  ".join(line).rstrip())
