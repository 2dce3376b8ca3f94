"""rkcnn runs: what has been trained."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from rkcnn.error import InputError

if TYPE_CHECKING:
    from rkcnn.record.result import Result

HEADS = ("data", "network", "recipe", "seed", "error", "best", "epochs", "time", "params", "state")
WORDS = ("data", "network", "recipe", "state")  # columns that start at the left


def runs(*, from_: Path = Path("runs"), json_: Annotated[bool, Parameter(negative=())] = False) -> None:
    """List every result below a folder: data, network, recipe, seed, errors, time.

    Parameters
    ----------
    from_
        The folder to look in.
    json_
        Print a JSON list of whole results instead of a table.
    """
    from rkcnn.record.result import find_results

    if not from_.is_dir():
        raise InputError(f"no folder {from_} here; train something first (rkcnn train) or name another with --from")
    found = list(find_results(from_))
    results = [(path.parent, result) for path, result in found if not isinstance(result, InputError)]
    if json_:
        print(json.dumps([{"folder": str(folder), **asdict(result)} for folder, result in results], indent=1))
    elif results:
        print_table([result for _, result in results])
    else:
        print(f"no results below {from_}")
    for _, trouble in found:
        if isinstance(trouble, InputError):
            print(f"rkcnn: {trouble}", file=sys.stderr)


def print_table(results: list[Result]) -> None:
    """Columns as wide as they need: a log or a pipe cuts nothing off."""
    from rkcnn.cli.summary import clock, percent
    from rkcnn.record.run import recipe_text

    rows = [
        (
            result.run["data"],
            result.run["spec"],
            recipe_text(result.run["recipe"]),
            str(result.run["seed"]),
            percent(result.error),
            percent(result.error_best),
            str(len(result.epochs)),
            clock(result.seconds),
            f"{result.params:,}",
            result.status.partition(":")[0],
        )
        for result in results
    ]
    widths = [max(map(len, column)) for column in zip(HEADS, *rows, strict=True)]
    for row in (HEADS, *rows):
        cells = zip(HEADS, row, widths, strict=True)
        line = (cell.ljust(width) if head in WORDS else cell.rjust(width) for head, cell, width in cells)
        print("  ".join(line).rstrip())
