"""Training steps: ours by each engine, and a peer's as its users would write it."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from rkcnn.bench.contender import TORCHS_OWN, Contender, count_flops, create_network, image_size
from rkcnn.bench.peers.same_outputs import build_peer, build_uncompared
from rkcnn.bench.plan import CannotRun, PeerChoice
from rkcnn.data.images import Images
from rkcnn.data.sets import SETS
from rkcnn.fit.engine import Engine, Graph, start_engine
from rkcnn.fit.recipe import Recipe, find_recipe
from rkcnn.fit.trainer import Trainer
from rkcnn.model.backends import backends_set_to
from rkcnn.record.bench import Measurement

WORK = "training step"


def default_batch(channels: int) -> int:
    """Return the batch of the paper's recipe for grey images or for colour."""
    return _recipe(channels).batch


def _recipe(channels: int) -> Recipe:
    return find_recipe("paper-mnist" if channels == 1 else "paper-cifar")


def make_noise(count: int, channels: int, size: int) -> Images:
    """Return random images: what a pixel holds makes no difference to how long a step takes."""
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, channels, size, size), dtype=torch.uint8, generator=generator)
    labels = torch.randint(0, 10, (count,), generator=generator)
    classes = SETS["mnist"].classes
    return Images("noise", "train", pixels, labels, classes, (0.5,) * channels, (0.25,) * channels, False, "", "")


def our_training_step(
    name: str, batch: int, precision: str, engine: str, at_once: int, device: torch.device, steps: int
) -> Contender:
    """Return `at_once` runs of our trainer on noise, by the paper's recipe; raises CannotRun if the engine can't.

    No turn may have more than `steps` steps.
    """
    network = create_network(name)
    recipe = replace(_recipe(network.channels), batch=batch, precision=precision, max_steps_per_epoch=0)
    images = make_noise(batch * steps, network.channels, image_size(network))
    engines: list[Engine] = []
    with backends_set_to(precision, deterministic=True, benchmark=False):  # as in a run
        for seed in range(at_once):
            trainer = Trainer(create_network(name, seed), images, recipe, seed, device)
            started = _start(engine, trainer)
            if not started.note:  # else it is another engine, which would be compiled for nothing
                started.begin()
            if started.note:
                raise CannotRun(started.note)
            engines.append(started)

    def advance(count: int) -> None:
        for engine in engines:
            engine.trainer.begin_epoch()
            engine.wait_for_caller()
        with backends_set_to(precision, deterministic=True, benchmark=False):
            for _ in range(count):
                for engine in engines:
                    engine.advance()

    flops = count_flops(network, batch, training=True)
    measurement = Measurement(WORK, name, batch, "rkcnn", engine, precision, at_once, flops)
    return Contender(measurement, device, advance, precision)


def _start(engine: str, trainer: Trainer) -> Engine:
    if engine == "graph-uncompiled":
        checked = start_engine("graph", trainer)  # for its reasons why there can be no graph
        return Graph(trainer, compiled=False) if isinstance(checked, Graph) else checked
    return start_engine(engine, trainer)


def peer_training_step(
    peer: PeerChoice, name: str, batch: int, device: torch.device, *, compare: bool = True
) -> Contender:
    """Return a plain training step of a peer's network, with our weights: eager, torch's SGD, images on the device.

    The precision is what torch does by itself: on a GPU, convolutions in tf32. Without `compare` its outputs are not
    compared with ours, which takes memory.
    """
    ours = create_network(name)
    size = image_size(ours)
    network, difference = build_peer(peer, ours, size) if compare else (build_uncompared(peer, ours), None)
    step = PlainStep(network.to(device).train(), batch, ours.channels, size, device)

    def advance(count: int) -> None:
        for _ in range(count):
            step.take()

    measurement = Measurement(
        WORK,
        name,
        batch,
        peer.name,
        "eager",
        "tf32" if device.type == "cuda" else "fp32",
        flops=count_flops(ours, batch, training=True),
        difference=difference,
    )
    return Contender(measurement, device, advance, TORCHS_OWN)


class PlainStep:
    """A training step as in the authors' script, without its reading of images and its printing."""

    def __init__(self, network: nn.Module, batch: int, channels: int, size: int, device: torch.device) -> None:
        generator = torch.Generator().manual_seed(0)
        self.network = network
        self.images = torch.randn(batch, channels, size, size, generator=generator).to(device)
        self.labels = torch.randint(0, 10, (batch,), generator=generator).to(device)
        self.sgd = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)

    def take(self) -> None:
        loss = F.cross_entropy(self.network(self.images), self.labels)
        self.sgd.zero_grad()
        loss.backward()
        self.sgd.step()
