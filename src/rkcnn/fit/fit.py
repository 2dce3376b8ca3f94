"""The loop: steps into epochs, one run or several at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import torch

from rkcnn.fit.engine import Engine
from rkcnn.fit.epoch import TrainingEpoch
from rkcnn.fit.trainer import Trainer


class Diverged(ArithmeticError):
    """A loss or a weight that is not finite: where it happened."""

    def __init__(self, what: str, epoch: int, step: int, lr: float) -> None:
        super().__init__(f"{what} not finite at epoch {epoch + 1}, step {step + 1}, lr {lr:g}")


class Stopped(Exception):
    """Asked to stop between two steps; the trainers stand at a position that can be kept."""


def fit(
    engines: Sequence[Engine], observe: Callable[[], bool] | None = None, rest: Callable[[], None] | None = None
) -> Iterator[tuple[int, TrainingEpoch | Diverged]]:
    """Train every engine's run to its end, in turn step by step, so that on a GPU they run side by side.

    Yields (which run, its epoch) when that epoch is done, or how it diverged, which ends it. `observe` is called
    after every step of all runs; when it says so, all of them come to rest with their clocks stopped, and `rest` is
    called: the place to keep and, by raising, to stop.
    """
    active = {i: engine for i, engine in enumerate(engines) if not engine.trainer.finished}
    for engine in active.values():
        if engine.trainer.step == 0:
            engine.trainer.begin_epoch()
        engine.follow()
    while active:
        start = time.perf_counter()
        for engine in active.values():
            engine.advance()
        ended = [i for i, engine in active.items() if engine.trainer.step == engine.trainer.steps]
        resting = observe is not None and observe()
        for i in active if resting else ended:
            active[i].wait()
        lap = time.perf_counter() - start
        for engine in active.values():
            engine.trainer.seconds += lap
        for i in ended:
            engine = active[i]
            outcome = _finish_epoch(engine.trainer)
            yield i, outcome
            engine.follow()
            if isinstance(outcome, Diverged) or engine.trainer.finished:
                del active[i]
        if resting and active and rest is not None:
            rest()


def _finish_epoch(trainer: Trainer) -> TrainingEpoch | Diverged:
    """Read the totals, and stand at the start of the next epoch."""
    number = trainer.epoch
    loss, wrong, seen, good = trainer.totals.tolist()
    lr = trainer.recipe.lr_at(number, min(int(good), trainer.steps - 1), trainer.steps)
    if good < trainer.steps:
        return Diverged("the loss is", number, int(good), lr)
    if not trainer.finite:
        return Diverged("the weights are", number, trainer.steps - 1, lr)
    epoch = TrainingEpoch(number, loss / seen, wrong / seen, lr, int(seen), trainer.seconds, *_solves(trainer))
    trainer.epoch += 1
    trainer.begin_epoch()
    return epoch


def _solves(trainer: Trainer) -> tuple[float, float, float] | tuple[None, None, None]:
    """What the epoch's solves took: the share that failed, and evaluations of f, summed over the periods."""
    if not trainer.tallies:
        return None, None, None
    read = [tally.read() for tally in trainer.tallies]
    sums = torch.tensor([sum(values) for values in zip(*read, strict=True)], dtype=torch.float64)
    unconverged, evaluations, backward, _ = (trainer.ranks.sum(sums) / trainer.ranks.world).tolist()
    return unconverged / len(read), evaluations, backward
