"""Trains one network on one data set by one recipe, with one seed or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rkcnn.data.load import load_data_set
from rkcnn.data.options import OwnOptions, Sources
from rkcnn.data.progress import Progress
from rkcnn.fit.recipe import Recipe
from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.run.observer import Observer
from rkcnn.run.settings import Settings, choose, name_of, size_of
from rkcnn.run.side_by_side import CHECKPOINT_INTERVAL, Execution, train_side_by_side


def train(
    spec: str | None = None,
    data: str = "mnist-mini",
    recipe: str | Recipe | None = None,
    seeds: Sequence[int] = (0,),
    *,
    changes: Mapping[str, Any] | None = None,
    init_from: Path | None = None,
    device: str = "auto",
    engine: str = "auto",
    out: str | Path = "runs",
    validation: int = 0,
    again: bool = False,
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
    sources: Sources | None = None,
    own: OwnOptions | None = None,
    progress: Progress | None = None,
    observer: Observer | None = None,
) -> list[Result]:
    """Train a network, one run for each seed, and return the results.

    Without a network or a recipe, they are chosen by the data (`run.settings`). `changes` are values of fields of the
    recipe, and `init_from` is a finished run's folder, or its weight file, whose weights the runs start from.
    A run that has a result is not trained again, one that has a checkpoint continues from it, and one with more epochs
    continues a shorter one where the schedule allows. With `validation`, so many training images are set apart, errors
    are measured on them, and the test images are not used. Raises Stopped when a signal asks to stop.
    """
    own = own or OwnOptions()
    own = replace(own, size=own.size if own.size is not None else size_of(init_from, data))
    training, test = load_data_set(data, sources, own, progress)
    if validation:
        training, test = training.split(validation)
    chosen = choose(Settings(spec, recipe, changes or {}, init_from), training, test)
    runs = [Run(name_of(training, test), chosen.network, chosen.recipe, seed) for seed in seeds]
    execution = Execution(Path(out), device, engine, again, checkpoint_interval, init_from)
    results = train_side_by_side(runs, chosen.training, chosen.test, execution, observer or Observer())
    return [results[run] for run in runs]
