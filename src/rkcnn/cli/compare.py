"""rkcnn compare: any runs on the same data by the same recipe, with statistics and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from rkcnn.cli.output import print_error, print_line


def compare(
    *runs: Path,
    reference: str | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
) -> int:
    """Compare runs of any networks on the same data by the same recipe: errors, costs, intervals and tests.

    Returns the exit code: 1 if a record can't be read, which is named on standard error and left out.

    Parameters
    ----------
    runs
        Folders of finished runs, or folders that hold some; seeds of one network are grouped.
    reference
        The network that the others are compared with, by its name; by default the first one.
    output
        A folder for comparison.md, comparison.csv, the figures and report.html.
    """
    from rkcnn.use.compare import compare as compare_runs

    found = compare_runs(runs, reference=reference)
    if output is not None:
        found.check_output(output)  # before anything is printed
    for warning in found.warnings:
        print_error(warning)
    print(found, end="" if output is None else "\n")
    if output is not None:
        for path in found.write(output):
            print_line(f"written   {path}")
    return 1 if found.damaged else 0
