"""The loop: steps into epochs, one run or several at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from rkcnn.model.period import Period
from rkcnn.model.tally import Took
from rkcnn.train.engine import Engine
from rkcnn.train.trainer import Trainer


@dataclass(frozen=True)
class Epoch:
    """What one epoch of training came to; error is a fraction, loss a mean over its images."""

    number: int
    loss: float
    error: float
    lr: float
    seconds: float
    images_per_second: float
    unconverged: float | None  # share of solves that did not converge, where a solver can fail to
    evaluations: float | None  # of f a solve, where the data decides
    backward_evaluations: float | None  # of f for a solve's gradient, where that is solved for


class Diverged(ArithmeticError):
    """A loss that is not finite: where it happened."""

    def __init__(self, epoch: int, step: int, lr: float) -> None:
        super().__init__(f"the loss is not finite at epoch {epoch + 1}, step {step + 1}, lr {lr:g}")
        self.epoch, self.step, self.lr = epoch, step, lr


class Stopped(Exception):
    """Asked to stop between two steps; the trainers stand at a position that can be kept."""


def fit(engines: Sequence[Engine], between: Callable[[], None] | None = None) -> Iterator[tuple[int, Epoch | Diverged]]:
    """Train every engine's run to its end, in turn step by step, so that on a GPU they run side by side.

    Yields (which run, its epoch) when that epoch is done, or how it diverged, which ends it. `between` is called
    after every step of all runs: the place to keep, to show and, by raising, to stop.
    """
    active = {i: engine for i, engine in enumerate(engines) if not engine.trainer.finished}
    began = dict.fromkeys(active, time.perf_counter())
    for engine in active.values():
        if engine.trainer.step == 0:
            engine.trainer.begin_epoch()
        engine.follow()
    started_at = {i: engine.trainer.step for i, engine in active.items()}
    while active:
        for engine in active.values():
            engine.advance()
        for i, engine in list(active.items()):
            trainer = engine.trainer
            if trainer.step < trainer.steps:
                continue
            outcome = _finish_epoch(engine, time.perf_counter() - began[i], trainer.steps - started_at[i])
            yield i, outcome
            engine.follow()
            if isinstance(outcome, Diverged) or trainer.finished:
                del active[i]
            began[i], started_at[i] = time.perf_counter(), 0
        if between is not None:
            between()


def _finish_epoch(engine: Engine, seconds: float, steps: int) -> Epoch | Diverged:
    """Read the totals, and stand at the start of the next epoch."""
    engine.wait()
    trainer = engine.trainer
    number = trainer.epoch
    loss, wrong, seen, good = trainer.totals.tolist()
    lr = trainer.recipe.lr_at(number, min(int(good), trainer.steps - 1), trainer.steps)
    if good < trainer.steps:
        return Diverged(number, int(good), lr)
    took = _solves(trainer)
    trainer.epoch += 1
    trainer.begin_epoch()
    return Epoch(
        number,
        loss / seen,
        wrong / seen,
        lr,
        seconds,
        steps * trainer.recipe.batch / seconds,
        took and took.unconverged,
        took and took.evaluations,
        took and took.backward_evaluations,
    )


def _solves(trainer: Trainer) -> Took | None:
    """What the epoch's solves took, a mean over the periods; None where nothing depends on the data."""
    tallies = [m.tally for m in trainer.network.modules() if isinstance(m, Period) and m.tally is not None]
    if not tallies:
        return None
    read = [tally.read() for tally in tallies]
    for tally in tallies:
        tally.reset()
    means = torch.tensor([sum(values) / len(values) for values in zip(*read, strict=True)], dtype=torch.float64)
    return Took(*(trainer.ranks.sum(means) / trainer.ranks.world).tolist())
