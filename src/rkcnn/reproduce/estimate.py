"""Estimates how long runs will take: their floating-point operations over the speed of a few steps timed here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import torch

from rkcnn.data.images import Images
from rkcnn.data.sets import DataSet, find_set
from rkcnn.fit.engine import Engine, Graph
from rkcnn.fit.trainer import Trainer
from rkcnn.model.backends import backends_set_to
from rkcnn.model.cost import Cost, cost
from rkcnn.model.create import create_model
from rkcnn.record.run import Run
from rkcnn.reproduce.worker import Slot
from rkcnn.run.job import build
from rkcnn.run.side_by_side import MOST_AT_ONCE

TIMED_STEPS = 4


@cache
def count_cost(spec: str, data: DataSet) -> Cost:
    """Return what a network costs for one image of a data set."""
    height, width, channels = data.shape
    with torch.device("meta"):
        network = create_model(spec, len(data.classes), channels)
    return cost(network, (height, width))


def training_flops(run: Run, flops: int) -> float:
    """Return the FLOPs of a whole run of a network with so many in a forward pass.

    The backward pass of a step takes twice its forward pass; after every epoch the test images are evaluated.
    """
    data, recipe = find_set(run.data), run.recipe
    steps = data.train.images // recipe.batch if recipe.drop_last else -(-data.train.images // recipe.batch)
    steps = min(steps, recipe.max_steps_per_epoch or steps)
    return float(flops) * recipe.epochs * (3 * steps * recipe.batch + data.test.images)


def measure_speed(runs: Sequence[Run], flops: dict[str, int], slot: Slot) -> float:
    """Return the FLOP/s of a slot at training, from a few steps of the cheapest network of the runs.

    On a GPU as many copies train side by side as would in earnest. `flops` are those of each network's forward pass.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(slot.threads)
    try:
        return _time_steps(runs, flops, torch.device(slot.device))
    finally:
        torch.set_num_threads(threads)


def _time_steps(runs: Sequence[Run], flops: dict[str, int], device: torch.device) -> float:
    run = min(runs, key=lambda run: flops[run.network])
    with backends_set_to(run.recipe.precision, deterministic=True, benchmark=False):
        return _time_run(run, min(MOST_AT_ONCE, len(runs)) if device.type == "cuda" else 1, flops[run.network], device)


def _time_run(run: Run, count: int, flops: int, device: torch.device) -> float:
    """Return the FLOP/s of steps of as many such runs at once."""
    images = _make_noise(find_set(run.data), run.recipe.batch * 2)
    engines: list[Engine] = []
    for seed in range(count):
        trainer = Trainer(build(replace(run, seed=seed), images), images, run.recipe, seed, device)
        captured = device.type == "cuda" and not trainer.solver_stats  # whose number of steps depends on the data
        engines.append(Graph(trainer, compiled=False) if captured else Engine(trainer))
        engines[-1].begin()
    _advance(engines)
    seconds = min(_advance(engines) for _ in range(TIMED_STEPS))
    return 3.0 * flops * run.recipe.batch * count / seconds


def _advance(engines: Sequence[Engine]) -> float:
    """Do one step of every engine and return the seconds that took."""
    start = time.perf_counter()
    for engine in engines:
        engine.trainer.begin_epoch()
        engine.wait_for_caller()
        engine.advance()
    for engine in engines:
        engine.wait()
    return time.perf_counter() - start


def _make_noise(data: DataSet, count: int) -> Images:
    """Return random images of the data set's kind: enough to measure speed, and a plan should download nothing."""
    height, width, channels = data.shape
    pixels = torch.randint(0, 256, (count, channels, height, width), dtype=torch.uint8)
    labels = torch.randint(0, len(data.classes), (count,))
    return Images("noise", "train", pixels, labels, data.classes, data.mean, data.std, False, "", "")
