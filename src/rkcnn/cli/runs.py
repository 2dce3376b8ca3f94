"""rkcnn runs: what has been trained."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from rkcnn.error import InputError


def runs(*, from_: Path = Path("runs"), json_: Annotated[bool, Parameter(negative=())] = False) -> None:
    """List every result below a folder: data, network, recipe, seed, errors, time.

    Parameters
    ----------
    from_
        The folder to look in.
    json_
        Print a JSON list of whole results instead of a table.
    """
    from rkcnn.record.result import Result, find_results

    if not from_.is_dir():
        raise InputError(f"no folder {from_} here; train something first (rkcnn train) or name another with --from")
    found = list(find_results(from_))
    results = [(path.parent, result) for path, result in found if isinstance(result, Result)]
    if json_:
        print(json.dumps([{"folder": str(folder), **asdict(result)} for folder, result in results], indent=1))
    elif results:
        print_table(results)
    else:
        print(f"no results below {from_}")
    for _, trouble in found:
        if isinstance(trouble, InputError):
            print(f"rkcnn: {trouble}", file=sys.stderr)


def print_table(results: list[tuple[Path, Result]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from rkcnn.cli.summary import clock, percent
    from rkcnn.record.run import recipe_text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for head in ("data", "network", "recipe"):
        table.add_column(head, no_wrap=True)
    for head in ("seed", "error", "best", "epochs", "time", "params"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for _, result in results:
        run = result.run
        table.add_row(
            run["data"],
            run["spec"],
            recipe_text(run["recipe"]),
            str(run["seed"]),
            percent(result.error),
            percent(result.error_best),
            str(len(result.epochs)),
            clock(result.seconds),
            f"{result.params:,}",
            result.status.partition(":")[0],
        )
    console = Console(highlight=False, markup=False)
    widest = console.measure(table).maximum if False else 0
    Console(width=max(console.width, widest, 120), highlight=False, markup=False).print(table)
