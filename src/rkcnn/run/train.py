"""Trains one network on one data set by one recipe, with one seed or several."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import torch

from rkcnn.data.images import Images
from rkcnn.data.load import load
from rkcnn.data.options import OwnOptions, Sources
from rkcnn.data.progress import Progress
from rkcnn.error import InputError
from rkcnn.fit.recipe import Recipe, recipe_of
from rkcnn.model.create import create_model
from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.run.observer import Observer
from rkcnn.run.side_by_side import KEEP_SECONDS, Execution, train_together
from rkcnn.run.signals import Stopped


def train(
    spec: str = "RKCNN-R-2@k=32",
    data: str | tuple[Images, Images] = "mnist-mini",
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
    """Train a network, one run for each seed, and return the results.

    `data` is the name of a data set, or images to train on and to test with. A run that has a result is not trained
    again, one that has a checkpoint continues from it, and one with more epochs continues a shorter one where the
    schedule allows. With `validation`, so many training images are set apart, errors are measured on them, and the
    test images are not used. Raises Stopped when a signal asks to stop.
    """
    chosen = recipe_of(recipe) if isinstance(recipe, str) else recipe
    if isinstance(data, str):
        name, (training, test) = data, load(data, sources, own, progress)
    else:
        name, (training, test) = name_images(*data), data
    if validation:
        training, test = training.split(validation)
        name = f"{name}~validation-{validation}"
    network = check_fit(spec, training)
    runs = [Run(name, network, chosen, seed) for seed in seeds]
    execution = Execution(Path(out), device, engine, again, keep_seconds)
    results = train_together(runs, training, test, execution, observer or Observer())
    return [results[run] for run in runs]


def name_images(training: Images, test: Images) -> str:
    """Return a name for images that were given as such, as arrays:0123456789ab: a hash of pixels and labels."""
    digest = hashlib.sha256()
    for images in (training, test):
        for tensor in (images.pixels, images.labels):
            digest.update(f"{tuple(tensor.shape)}".encode())
            digest.update(tensor.contiguous().numpy().data)
    return f"arrays:{digest.hexdigest()[:12]}"


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
    """Train a network with one seed and return the result; this is `rkcnn.train`."""
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
        if str(stopped) == "SIGINT":  # as a caller of Python functions expects of Ctrl-C
            raise KeyboardInterrupt from None
        raise
    return result


def check_fit(spec: str, images: Images) -> str:
    """Return the network's full name; raises InputError if it can't take these images."""
    _, channels, height, width = images.pixels.shape
    with torch.device("meta"):
        network = create_model(spec, len(images.classes), channels)
        try:
            network(torch.empty(2, channels, height, width, device="meta"))
        except InputError as error:
            raise InputError(f"{images.name} doesn't fit the network: {error}") from None
    return network.name
