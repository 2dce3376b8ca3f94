"""rkcnn log: sends the numbers of finished runs to a logger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from rkcnn.cli.output import print_error, print_line
from rkcnn.error import InputError


def log(
    *runs: Path,
    to: str,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    project: str | None = None,
) -> int:
    """Send the numbers of finished runs, epoch by epoch, to TensorBoard, Weights & Biases or MLflow.

    Returns the exit code: 1 if a record can't be read, which is named on standard error and left out.

    Parameters
    ----------
    runs
        Folders of finished runs, or folders that hold some.
    to
        tensorboard, wandb or mlflow.
    output
        The folder that is written to: by default tensorboard, or for wandb this one; for MLflow it is
        MLFLOW_TRACKING_URI that says where.
    project
        The project of Weights & Biases, or the experiment of MLflow; by default rkcnn.
    """
    from rkcnn.use.log import log_runs

    damaged: list[InputError] = []
    for name, where in log_runs(runs, to, output, project, damaged.append):
        print_line(f"logged    {name}: {where}", flush=True)
    for error in damaged:
        print_error(str(error))
    return 1 if damaged else 0
