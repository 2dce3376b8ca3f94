"""Train one network on one set by one recipe, with one seed or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from rkcnn.data.images import Images
from rkcnn.data.load import load
from rkcnn.data.options import OwnOptions, Sources
from rkcnn.data.progress import Progress
from rkcnn.error import InputError
from rkcnn.fit.fit import Stopped
from rkcnn.fit.recipe import Recipe, recipe_of
from rkcnn.model.create import create_model
from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.run.observer import Observer
from rkcnn.run.side_by_side import KEEP_SECONDS, Execution, train_together


def train(
    spec: str = "RKCNN-R-2@k=32",
    data: str = "mnist-mini",
    recipe: str | Recipe = "mini",
    seeds: Sequence[int] = (0,),
    *,
    device: str = "auto",
    engine: str = "auto",
    out: str | Path = "runs",
    validation: int = 0,
    again: bool = False,
    keep_seconds: float = KEEP_SECONDS,
    sources: Sources | None = None,
    own: OwnOptions | None = None,
    progress: Progress | None = None,
    observer: Observer | None = None,
) -> list[Result]:
    """Train a network, one run for each seed, and return what came of them.

    A run that is finished already is not run again, one that was broken off goes on where it stood, and one with
    more epochs goes on from a shorter one where the schedule allows. With a `validation` split the errors are those
    of the held-out images, and the test set is not looked at.
    """
    chosen = recipe_of(recipe) if isinstance(recipe, str) else recipe
    training, test = load(data, sources, own, progress)
    if validation:
        training, test = training.split(validation)
    named = f"{data}~validation-{validation}" if validation else data
    name = check_fit(spec, training)
    runs = [Run(named, name, chosen, seed) for seed in seeds]
    results = train_together(
        runs, training, test, Execution(Path(out), device, engine, again, keep_seconds), observer or Observer()
    )
    return [results[run] for run in runs]


def train_one(
    spec: str = "RKCNN-R-2@k=32",
    data: str = "mnist-mini",
    recipe: str | Recipe = "mini",
    seed: int = 0,
    *,
    device: str = "auto",
    engine: str = "auto",
    out: str | Path = "runs",
    validation: int = 0,
    again: bool = False,
    observer: Observer | None = None,
) -> Result:
    """Train a network with one seed and return what came of it; this is `rkcnn.train`."""
    try:
        (result,) = train(
            spec,
            data,
            recipe,
            (seed,),
            device=device,
            engine=engine,
            out=out,
            validation=validation,
            again=again,
            observer=observer,
        )
    except Stopped as stopped:
        if str(stopped) == "SIGINT":  # what Python's own callers know Ctrl-C by; the run is kept
            raise KeyboardInterrupt from None
        raise
    return result


def check_fit(spec: str, images: Images) -> str:
    """The network's full name, if it can take these images."""
    _, channels, height, width = images.pixels.shape
    with torch.device("meta"):
        network = create_model(spec, len(images.classes), channels)
        try:
            network(torch.empty(2, channels, height, width, device="meta"))
        except InputError as error:
            raise InputError(f"{images.name} doesn't fit the network: {error}") from None
    return network.name
