"""Trains one network on one data set by one recipe, with one seed or several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from rkcnn.data.images import Images
from rkcnn.data.load import load
from rkcnn.data.options import OwnOptions, Sources
from rkcnn.data.progress import Progress
from rkcnn.error import InputError
from rkcnn.fit.recipe import Recipe, find_recipe
from rkcnn.model.create import create_model
from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.run.observer import Observer
from rkcnn.run.side_by_side import CHECKPOINT_INTERVAL, Execution, train_side_by_side


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
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
    sources: Sources | None = None,
    own: OwnOptions | None = None,
    progress: Progress | None = None,
    observer: Observer | None = None,
) -> list[Result]:
    """Train a network, one run for each seed, and return the results.

    A run that has a result is not trained again, one that has a checkpoint continues from it, and one with more epochs
    continues a shorter one where the schedule allows. With `validation`, so many training images are set apart, errors
    are measured on them, and the test images are not used. Raises Stopped when a signal asks to stop.
    """
    chosen = find_recipe(recipe) if isinstance(recipe, str) else recipe
    training, test = load(data, sources, own, progress)
    name = data
    if validation:
        training, test = training.split(validation)
        name = f"{data}~validation-{validation}"
    network = check_network(spec, training)
    runs = [Run(name, network, chosen, seed) for seed in seeds]
    execution = Execution(Path(out), device, engine, again, checkpoint_interval)
    results = train_side_by_side(runs, training, test, execution, observer or Observer())
    return [results[run] for run in runs]


def check_network(spec: str, images: Images) -> str:
    """Return the network's full name; raises InputError if it can't take these images."""
    _, channels, height, width = images.pixels.shape
    with torch.device("meta"):
        network = create_model(spec, len(images.classes), channels)
        try:
            network(torch.empty(2, channels, height, width, device="meta"))
        except InputError as error:
            raise InputError(f"{images.name} doesn't fit the network: {error}") from None
    return network.name
