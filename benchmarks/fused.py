"""A training step in plain and in fused kernels, side by side in one run on a GPU:

    python benchmarks/fused.py [SPEC] [BATCH] [AT_ONCE]

In bf16 by paper-cifar, on noise of CIFAR's shape. Writes a table, and JSON to $OUT/fused.json where OUT is set:
milliseconds of a run's step alone and AT_ONCE, peak memory, kernels of a step, the first losses, and whether the same
steps give the same bits again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch

from rkcnn.data.images import Images
from rkcnn.fit.engine import Graph
from rkcnn.fit.recipe import find_recipe
from rkcnn.fit.trainer import Trainer
from rkcnn.model.create import create_model
from rkcnn.model.fast.choose import fuse_steps
from rkcnn.run.device import set_precision

ROUNDS, STEPS, LOSSES = 5, 30, 30
DEVICE = torch.device("cuda")


def noise(count: int) -> Images:
    drawn = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=drawn)
    labels = torch.randint(0, 10, (count,), generator=drawn)
    return Images("noise", "train", pixels, labels, tuple("abcdefghij"), (0.5,) * 3, (0.25,) * 3, False, "", "")


def begin(spec: str, batch: int, seed: int, images: Images, fused: bool) -> Graph:
    torch.manual_seed(seed)
    recipe = replace(find_recipe("paper-cifar"), precision="bf16", batch=batch)
    run = Trainer(create_model(spec, 10, 3), images, recipe, seed, DEVICE)
    if fused and (reason := fuse_steps(run.network, DEVICE)):
        sys.exit(f"{spec} can't be fused: {reason}")
    engine = Graph(run)
    engine.begin()
    return engine


def take_losses(engine: Graph) -> list[float]:
    """The loss of each of the first steps, after which the trainer is not put back."""
    engine.trainer.begin_epoch()
    engine.wait_for_caller()
    sums = [0.0]
    for _ in range(LOSSES):
        engine.advance()
        engine.wait()
        sums.append(float(engine.trainer.totals[0]))
    return [(after - before) / engine.trainer.recipe.batch for before, after in pairwise(sums)]


def repeats(engine: Graph) -> tuple[list[float], bool]:
    """The first losses, and whether taking the same steps again changes no bit of the state."""
    state = list(engine.trainer.state().values())
    saved = [tensor.clone() for tensor in state]
    losses = take_losses(engine)
    first = [tensor.clone() for tensor in state]
    with torch.no_grad():
        for tensor, value in zip(state, saved, strict=True):
            tensor.copy_(value)
    take_losses(engine)
    return losses, all(torch.equal(a, b) for a, b in zip(first, state, strict=True))


def milliseconds(engines: Sequence[Graph]) -> float:
    """The median over rounds of the milliseconds of one run's step."""
    found = []
    for _ in range(ROUNDS):
        for engine in engines:
            engine.trainer.begin_epoch()
            engine.wait_for_caller()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(STEPS):
            for engine in engines:
                engine.advance()
        for engine in engines:
            engine.wait()
        found.append(1e3 * (time.perf_counter() - start) / STEPS / len(engines))
    return median(found)


def profile(engine: Graph) -> list[tuple[str, int, float]]:
    """(name, launches, microseconds) of a step's kernels, those that take longest first."""
    engine.trainer.begin_epoch()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiled:
        engine.advance()
        engine.wait()
    rows = [(event.key[:80], event.count, event.self_device_time_total) for event in profiled.key_averages()]
    return sorted((row for row in rows if row[2] > 0), key=lambda row: -row[2])


def measure(spec: str, batch: int, at_once: int, fused: bool) -> dict[str, Any]:
    images = noise((max(STEPS, LOSSES) + 1) * batch)
    torch.cuda.reset_peak_memory_stats()
    engines = [begin(spec, batch, 0, images, fused)]
    peak = torch.cuda.max_memory_allocated() / 2**20
    losses, same = repeats(engines[0])
    alone = milliseconds(engines)
    kernels = profile(engines[0])
    engines += [begin(spec, batch, seed, images, fused) for seed in range(1, at_once)]
    return {
        "alone ms": alone,
        f"{at_once} at once ms": milliseconds(engines),
        "peak MiB": peak,
        "kernels": sum(count for _, count, _ in kernels),
        "kernels us": sum(us for *_, us in kernels),
        "same bits again": same,
        "losses": losses,
        "profile": kernels[:40],
    }


def main(spec: str = "RKCNN-I-2_2_2@k=120", batch: str = "32", at_once: str = "4") -> None:
    set_precision("bf16")
    found = {name: measure(spec, int(batch), int(at_once), name == "fused") for name in ("plain", "fused")}
    print(f"{spec}, batch {batch}, bf16, {torch.cuda.get_device_name()}, torch {torch.__version__}")
    for key in found["plain"]:
        if key not in ("losses", "profile"):
            print(f"{key:20} {found['plain'][key]!s:>24.10} {found['fused'][key]!s:>24.10}")
    if "OUT" in os.environ:
        (Path(os.environ["OUT"]) / "fused.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
