"""How long a training step takes on one CPU thread: eager in both layouts, and compiled, side by side in turns.

    python benchmarks/cpu_layouts.py [ROUNDS]

Prints for each network the milliseconds of processor time, which other work on the machine changes less than the time
on the wall: the median over the rounds, and the median of its ratio to the layout of one channel after the other. The
numbers in docs/performance.md are those of seven rounds. Last comes how far the statistics of a batch norm are from
those in float64 in each layout, which is why training has the first.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from statistics import median
from time import process_time
from typing import NamedTuple

import torch

import rkcnn
from rkcnn.bench.training_step import make_noise
from rkcnn.fit.engine import Engine
from rkcnn.fit.recipe import find_recipe
from rkcnn.fit.recipe_changes import read_changes
from rkcnn.fit.trainer import Trainer
from rkcnn.model.batch_norm import BatchNorm


class Case(NamedTuple):
    """A network, its images and its recipe."""

    name: str
    channels: int
    side: int  # of an image, in pixels
    batch: int
    precision: str = "fp32"


CASES = (
    Case("RKCNN-R-2@k=32", 1, 28, 128),
    Case("RKCNN-R-2@k=32", 1, 28, 128, "bf16"),
    Case("ResNet@k=32", 1, 28, 128),
    Case("RKNet-rk4_38@k=32", 1, 28, 128),
    Case("RKCNN-R-2_2@k=32,stem=odenet", 1, 28, 64),  # the default for your own grey images
    Case("RKCNN-R-2_2@k=32,stem=odenet", 3, 32, 64),  # the default for your own colour images
    Case("RKCNN-R-2_2_2@k=32,stem=odenet", 3, 64, 64),  # the default for larger ones
    Case("RKCNN-I-2_2_2@k=26_28_28", 3, 32, 64),
    Case("RKCNN-I-2_2_2@k=26_28_28", 3, 32, 64, "bf16"),
    Case("DenseNet-2_2_2@k=32", 3, 32, 64),
    Case("ResNet@k=32_32_32", 3, 32, 64),
)


class Way(NamedTuple):
    """How steps are computed."""

    layout: torch.memory_format
    by_rows: bool = False  # batch norm with exact statistics, where channels come last
    compiled: bool = False


WAYS = {
    "contiguous": Way(torch.contiguous_format),
    "channels last, torch's batch norm": Way(torch.channels_last),
    "channels last": Way(torch.channels_last, by_rows=True),
    "contiguous, compiled": Way(torch.contiguous_format, compiled=True),
    "channels last, compiled": Way(torch.channels_last, compiled=True),
}


def main(rounds: int = 7) -> None:
    torch.set_num_threads(1)
    for case in CASES:
        engines = {name: prepare(case, rounds, way) for name, way in WAYS.items()}
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, engine in engines.items():
                began = process_time()
                engine.advance()
                seconds[way].append(process_time() - began)
        first = seconds["contiguous"]
        print(f"{case.name}, {case.channels} x {case.side} x {case.side}, batch {case.batch}, {case.precision}")
        for way, each in seconds.items():
            ratio = median(a / b for a, b in zip(first, each, strict=True))
            print(f"  {way:34} {1e3 * median(each):8.1f} ms  {ratio:.2f} x", flush=True)
    measure_batch_norm()


def measure_batch_norm() -> None:
    """Print the largest relative error of a batch norm's variance, for a batch of 256 images of 32 x 32 pixels."""
    x = torch.randn(256, 26, 32, 32, generator=torch.Generator().manual_seed(0)) / 2 + 2
    exact = x.double().var((0, 2, 3))
    for name, way in WAYS.items():
        if not way.compiled:
            norm = BatchNorm(26, momentum=1.0)
            norm.by_rows = way.by_rows
            norm(x.contiguous(memory_format=way.layout))
            assert norm.running_var is not None
            print(f"batch norm, {name}: variance within {float((norm.running_var / exact - 1).abs().max()):.1e}")


def prepare(case: Case, rounds: int, way: Way) -> Engine:
    """Return an engine that has taken its first step, on images of noise, by the recipe `own`."""
    images = make_noise((rounds + 1) * case.batch, case.channels, case.side)
    recipe = replace(find_recipe("own"), **read_changes({"batch": str(case.batch), "precision": case.precision}))
    network = rkcnn.create_model(case.name, classes=10, channels=case.channels)
    trainer = Trainer(network, images, recipe, 0, torch.device("cpu"))
    trainer.layout = way.layout
    network.to(memory_format=way.layout)  # type: ignore[call-overload]
    for module in network.modules():
        if isinstance(module, BatchNorm):
            module.by_rows = way.by_rows
    trainer.sgd.buffers = [torch.zeros_like(parameter) for parameter in trainer.sgd.parameters]
    engine = Engine(trainer, way.compiled)
    engine.begin()
    engine.advance()
    return engine


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
