"""How long runs will take: their arithmetic, over what this machine was seen to do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import torch

from rkcnn.data.images import Images
from rkcnn.data.load import find
from rkcnn.data.sets import DataSet
from rkcnn.fit.engine import Engine, Graph
from rkcnn.fit.trainer import Trainer
from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.record.run import Run
from rkcnn.reproduce.worker_process import Place
from rkcnn.run.device import set_precision
from rkcnn.run.job import build
from rkcnn.run.side_by_side import MOST_AT_ONCE

TIMED = 4  # steps


def count_flops(spec: str, data: DataSet) -> int:
    """2 x MAC of a forward pass of one image, the least where the data decides."""
    height, width, channels = data.shape
    with torch.device("meta"):
        network = create_model(spec, len(data.classes), channels)
    return cost(network, (height, width)).flops


def training_flops(run: Run, flops: int) -> float:
    """Of a whole run: a step's backward pass takes twice its forward pass; then the test images, every epoch."""
    data, recipe = find(run.data), run.recipe
    steps = data.train.images // recipe.batch if recipe.drop_last else -(-data.train.images // recipe.batch)
    steps = min(steps, recipe.most_steps or steps)
    return float(flops) * recipe.epochs * (3 * steps * recipe.batch + data.test.images)


def measure_rate(runs: Sequence[Run], flops: dict[str, int], place: Place) -> float:
    """FLOP/s of a place at training: a few steps of the cheapest of the runs, as many at once as would be."""
    threads = torch.get_num_threads()
    torch.set_num_threads(place.threads)
    try:
        return _measure(runs, flops, torch.device(place.device))
    finally:
        torch.set_num_threads(threads)


def _measure(runs: Sequence[Run], flops: dict[str, int], place: torch.device) -> float:
    run = min(runs, key=lambda run: flops[run.spec])
    set_precision(run.recipe.precision)
    count = min(MOST_AT_ONCE, len(runs)) if place.type == "cuda" else 1
    images = _noise(find(run.data), run.recipe.batch * 2)
    engines: list[Engine] = []
    for seed in range(count):
        trainer = Trainer(build(replace(run, seed=seed), images), images, run.recipe, seed, place)
        engines.append(Graph(trainer, compiled=False) if place.type == "cuda" else Engine(trainer))
        engines[-1].begin()
    _advance(engines)
    seconds = min(_advance(engines) for _ in range(TIMED))
    return 3.0 * flops[run.spec] * run.recipe.batch * count / seconds


def _advance(engines: Sequence[Engine]) -> float:
    start = time.perf_counter()
    for engine in engines:
        engine.trainer.begin_epoch()
        engine.wait_for_caller()
        engine.advance()
    for engine in engines:
        engine.wait()
    return time.perf_counter() - start


def _noise(data: DataSet, count: int) -> Images:
    """Speed asks for no more, and a plan should fetch nothing."""
    height, width, channels = data.shape
    pixels = torch.randint(0, 256, (count, channels, height, width), dtype=torch.uint8)
    labels = torch.randint(0, len(data.classes), (count,))
    return Images("noise", "train", pixels, labels, data.classes, data.mean, data.std, False, "", "")
