"""The numbers of finished runs for TensorBoard, Weights & Biases and MLflow, replayed from their records.

Imports no torch. Live logging is done by an `Observer` (docs/logging.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from os import environ
from pathlib import Path

from rkcnn.disk import writing_to
from rkcnn.error import InputError, did_you_mean, how_to_install
from rkcnn.escape import is_unicode
from rkcnn.record.metrics import Metrics, list_metrics
from rkcnn.record.result import Result, select_results
from rkcnn.run_folder import RESULT

INSTALL = {
    "tensorboard": how_to_install("tensorboard"),
    "wandb": "pip install wandb",
    "mlflow": "pip install mlflow",
}
PROJECT = "rkcnn"
SUFFIX = ".rkcnn"  # ends the names of TensorBoard's files that are ours
MOST_METRICS = 1000  # that MLflow takes at once


@dataclass(frozen=True)
class LoggedRun:
    """A run as loggers take it. Its record has no times of day, so its end is when its result was written."""

    name: str  # its folder below `out`
    identity: str  # the same whenever the same run is logged
    settings: dict[str, str | int | float | bool]
    rows: tuple[Metrics, ...]
    times: tuple[float, ...]  # seconds since 1970 at the end of each epoch
    summary: dict[str, int | float]
    finished: bool


def log_runs(
    paths: Iterable[Path],
    to: str,
    output: Path | None = None,
    project: str | None = None,
    on_damaged: Callable[[InputError], object] | None = None,
) -> Iterator[tuple[str, str]]:
    """Send the runs in these folders to a logger; yield the name of each, and where it is.

    `output` is TensorBoard's folder, or that in which Weights & Biases keeps its own; MLflow's is set by the
    environment variable MLFLOW_TRACKING_URI. `project` is the project of Weights & Biases or the experiment of MLflow.
    A run that was logged before is replaced. `on_damaged` is called for each record that can't be read; without it the
    first one is raised.
    """
    if to not in LOGGERS:
        raise InputError(f"no logger {to!r}{did_you_mean(to, LOGGERS)}; loggers are {', '.join(LOGGERS)}")
    if find_spec(to) is None:
        raise InputError(f"{to} is not installed here; install it with {INSTALL[to]}")
    if to == "mlflow" and output is not None:
        raise InputError(f"`output={output}` given with mlflow; say where it keeps runs by MLFLOW_TRACKING_URI")
    if to == "tensorboard" and project is not None:
        raise InputError(f"`project={project}` given with tensorboard, which has none; name a folder with `output=...`")
    if output is not None and not is_unicode(str(output.absolute())):  # a current folder may have such a name too
        raise InputError(f"{output} has bytes that are no UTF-8, which {to} can't write to; name another `output=...`")
    records, unreadable = select_results(paths)
    for error in unreadable:
        if on_damaged is None:
            raise error
        on_damaged(error)
    runs = [_prepare(folder, result) for folder, result in records]
    yield from LOGGERS[to](runs, output, project or PROJECT)


def _prepare(folder: Path, result: Result) -> LoggedRun:
    run = result.run
    rows = tuple(list_metrics(run, result.epochs))
    time = (folder / RESULT).stat().st_mtime - sum(epoch.seconds for epoch in result.epochs)
    times = []
    for epoch in result.epochs:
        time += epoch.seconds
        times.append(time)
    recipe = {name: value for name, value in asdict(run.recipe).items() if name != "name"}
    facts = {"data": run.data, "network": run.network, "seed": run.seed, "recipe": run.recipe.name, **recipe}
    costs = {"params": result.params, "flops": result.flops, "seconds": result.seconds}
    errors = {f"{run.held_out}/error": result.error, f"{run.held_out}/error_best": result.error_best}
    content = json.dumps([run.as_dict(), result.data.get("train_sha256"), result.data.get("test_sha256")])
    return LoggedRun(
        run.folder.as_posix(),
        hashlib.sha256(content.encode()).hexdigest()[:16],
        {name: "_".join(map(str, value)) if isinstance(value, tuple) else value for name, value in facts.items()},
        rows,
        tuple(times),
        {name: value for name, value in {**errors, **costs}.items() if value is not None},
        result.finished,
    )


def _values(row: Metrics) -> dict[str, int | float]:
    """Return what is logged of a row at its step."""
    return {name: value for name, value in row.items() if name != "step"}


def _to_tensorboard(runs: list[LoggedRun], output: Path | None, project: str) -> Iterator[tuple[str, str]]:
    """Write an event file for each run, in a folder with the run's name."""
    tensorboard = import_module("torch.utils.tensorboard")
    summary = import_module("torch.utils.tensorboard.summary")
    for run in runs:
        folder = (output or Path("tensorboard")) / run.name
        with writing_to(folder, "name another folder with `output=...`"):
            folder.mkdir(parents=True, exist_ok=True)
            before = list(folder.glob(f"events.*{SUFFIX}"))
            with tensorboard.SummaryWriter(str(folder), filename_suffix=SUFFIX) as writer:
                # The metrics that the HParams page shows are the last values of these scalars.
                for part in summary.hparams(run.settings, dict.fromkeys(_values(run.rows[0]) if run.rows else (), 0.0)):
                    writer.file_writer.add_summary(part)
                for row, time in zip(run.rows, run.times, strict=True):
                    for name, value in _values(row).items():
                        writer.add_scalar(name, value, row["step"], walltime=time)
            for path in before:
                path.unlink()
        yield run.name, str(folder)


def _to_wandb(runs: list[LoggedRun], output: Path | None, project: str) -> Iterator[tuple[str, str]]:
    """Log each run offline, unless WANDB_MODE says otherwise, so that nothing leaves this machine unasked."""
    wandb = import_module("wandb")
    folder, mode = output or Path(), environ.get("WANDB_MODE", "offline")
    with writing_to(folder, "name another folder with `output=...`"):
        folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        started = wandb.init(
            project=project,
            name=run.name,
            id=run.identity,
            config=run.settings,
            dir=str(folder),
            mode=mode,
            settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),  # those of another machine
        )
        for row, time in zip(run.rows, run.times, strict=True):
            started.log({**_values(row), "_timestamp": time}, step=row["step"])
        started.summary.update(run.summary)
        where = started.url if mode == "online" else str(Path(started.dir).parent)
        started.finish(exit_code=0 if run.finished else 1)
        yield run.name, where


def _to_mlflow(runs: list[LoggedRun], output: Path | None, project: str) -> Iterator[tuple[str, str]]:
    """Log each run to the experiment `project`, which is made if there is none."""
    client = import_module("mlflow").MlflowClient()
    entities = import_module("mlflow.entities")
    known = client.get_experiment_by_name(project)
    experiment = known.experiment_id if known is not None else client.create_experiment(project)
    for run in runs:
        before = client.search_runs([experiment], filter_string=f"tags.rkcnn_run = '{run.identity}'")
        end = round(1000 * (run.times[-1] if run.times else 0))  # MLflow counts milliseconds
        start = round(1000 * run.times[0] - 1000 * run.rows[0]["seconds"]) if run.times else 0
        made = client.create_run(experiment, start_time=start, run_name=run.name, tags={"rkcnn_run": run.identity})
        number = made.info.run_id
        metrics = [
            entities.Metric(name, value, round(1000 * time), row["step"])
            for row, time in zip(run.rows, run.times, strict=True)
            for name, value in _values(row).items()
        ]
        last = run.rows[-1]["step"] if run.rows else 0
        metrics += [entities.Metric(f"summary/{name}", value, end, last) for name, value in run.summary.items()]
        client.log_batch(number, params=[entities.Param(name, str(value)) for name, value in run.settings.items()])
        for i in range(0, len(metrics), MOST_METRICS):
            client.log_batch(number, metrics=metrics[i : i + MOST_METRICS])
        client.set_terminated(number, status="FINISHED" if run.finished else "FAILED", end_time=end)
        for old in before:
            client.delete_run(old.info.run_id)
        yield run.name, f"experiment {project}, run {number}, in {client.tracking_uri}"


LOGGERS: dict[str, Callable[[list[LoggedRun], Path | None, str], Iterator[tuple[str, str]]]] = {
    "tensorboard": _to_tensorboard,
    "wandb": _to_wandb,
    "mlflow": _to_mlflow,
}
