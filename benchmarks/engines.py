"""Milliseconds a training step, engine beside engine in one run:

    python benchmarks/engines.py [SPEC] [RECIPE] [DEVICE]

Networks of one period train on the bundled digits, others on noise of CIFAR's shape: speed asks nothing else.
Every engine takes its turn in each of ROUNDS rounds and the best round counts, since machines are noisy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.fit.engine import Engine, Graph
from rkcnn.fit.recipe import Recipe, find_recipe
from rkcnn.fit.trainer import Trainer
from rkcnn.model.create import create_model
from rkcnn.model.spec import parse
from rkcnn.run.device import pick_device, set_precision

ROUNDS, STEPS, WARM_UP = 4, 40, 10


def trainer(spec: str, recipe: Recipe, images: Images, device: torch.device, seed: int) -> Trainer:
    torch.manual_seed(seed)
    network = create_model(spec, len(images.classes), images.pixels.shape[1])
    return Trainer(network, images, recipe, seed, device)


def noise(like: Images) -> Images:
    """10,000 images of CIFAR's shape."""
    pixels = torch.randint(0, 256, (len(like), 3, 32, 32), dtype=torch.uint8)
    return replace(like, name="noise", pixels=pixels, mean=(0.5,) * 3, std=(0.25,) * 3)


def advance(engines: Sequence[Engine], steps: int) -> float:
    """Seconds a step of one run, the runs side by side."""
    for engine in engines:
        engine.trainer.begin_epoch()
        engine.wait_for_caller()
    start = time.perf_counter()
    for _ in range(steps):
        for engine in engines:
            engine.advance()
    for engine in engines:
        engine.wait()
    return (time.perf_counter() - start) / steps / len(engines)


def main(spec: str = "RKCNN-R-2@k=32", chosen: str = "paper-mnist", place: str = "auto") -> None:
    device = pick_device(place)
    recipe = find_recipe(chosen)
    set_precision(recipe.precision)
    images, _ = load_data_set("mnist-mini")
    if "@" not in spec or parse(spec).periods > 1:
        images = noise(images)

    def runs(make: Callable[[Trainer], Engine], count: int = 1) -> list[Engine]:
        return [make(trainer(spec, recipe, images, device, seed)) for seed in range(count)]

    engines = {"eager": runs(Engine), "compile": runs(lambda t: Engine(t, compiled=True))}
    if device.type == "cuda":
        engines["graph, not compiled"] = runs(lambda t: Graph(t, compiled=False))
        engines["graph"] = runs(Graph)
        engines["5 graphs at once"] = runs(Graph, 5)
        engines["10 graphs at once"] = runs(Graph, 10)
    best = dict.fromkeys(engines, float("inf"))
    for group in engines.values():
        for engine in group:
            engine.begin()
        advance(group, WARM_UP)
    for _ in range(ROUNDS):
        for name, group in engines.items():
            best[name] = min(best[name], advance(group, STEPS))
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"{spec}, {chosen}: batch {recipe.batch}, {recipe.precision}, {where}, torch {torch.__version__}")
    for name, seconds in best.items():
        print(f"{name:22} {1e3 * seconds:8.3f} ms a run's step {best['eager'] / seconds:6.1f} x")


if __name__ == "__main__":
    main(*sys.argv[1:])
