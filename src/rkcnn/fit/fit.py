"""The training loop: it takes steps and tells its caller what happened after each of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from rkcnn.fit.engine import Engine
from rkcnn.fit.epoch import TrainingEpoch
from rkcnn.fit.trainer import Trainer


@dataclass
class StepsDone:
    """Every run that is still training has taken one more step; a GPU may still be working on it.

    Set `pause` to True to let every run complete its step; `Paused` is then yielded.
    """

    pause: bool = False


class EpochDone(NamedTuple):
    """A run has finished an epoch; `run` is its position in the list of engines."""

    run: int
    epoch: TrainingEpoch


class Diverged(NamedTuple):
    """A run has ended because its loss or its weights are not finite; `reason` says at which step."""

    run: int
    reason: str


class Paused:
    """All steps are complete and no time is counted: the caller can write checkpoints or leave the loop."""


def fit(engines: Sequence[Engine]) -> Iterator[StepsDone | EpochDone | Diverged | Paused]:
    """Train every engine's run to its end, one step of each in turn, so that they run side by side on a GPU.

    Yields what happened. A run's seconds count from its first step on and stop while the caller handles an
    `EpochDone`, a `Diverged` or a `Paused`.
    """
    training = {run: engine for run, engine in enumerate(engines) if not engine.trainer.finished}
    for engine in training.values():
        if engine.trainer.step == 0:
            engine.trainer.begin_epoch()
        engine.wait_for_caller()
    while training:
        start = time.perf_counter()
        for engine in training.values():
            engine.advance()
        steps_done = StepsDone()
        yield steps_done
        at_epoch_end = [run for run, engine in training.items() if engine.trainer.step == engine.trainer.steps]
        for run in training if steps_done.pause else at_epoch_end:
            training[run].wait()
        seconds = time.perf_counter() - start
        for engine in training.values():
            engine.trainer.seconds += seconds
        for run in at_epoch_end:
            event = _finish_epoch(run, training[run].trainer)
            yield event
            training[run].wait_for_caller()
            if isinstance(event, Diverged) or training[run].trainer.finished:
                del training[run]
        if steps_done.pause and training:
            yield Paused()


def _finish_epoch(run: int, trainer: Trainer) -> EpochDone | Diverged:
    """Read the epoch's totals and move the trainer to the start of the next epoch."""
    number, last = trainer.epoch, trainer.steps - 1
    loss, wrong, images, finite_steps = trainer.totals.tolist()
    step = min(int(finite_steps), last)
    lr = trainer.recipe.lr_at(number, step, trainer.steps)
    if finite_steps < trainer.steps or not trainer.weights_are_finite:
        what = "the loss is" if finite_steps < trainer.steps else "the weights are"
        return Diverged(run, f"{what} not finite at epoch {number + 1}, step {step + 1}, lr {lr:g}")
    solves = _average_solves(trainer)
    epoch = TrainingEpoch(number, loss / images, wrong / images, lr, int(images), trainer.seconds, *solves)
    trainer.epoch += 1
    trainer.begin_epoch()
    return EpochDone(run, epoch)


def _average_solves(trainer: Trainer) -> tuple[float, float, float] | tuple[None, None, None]:
    """Return the epoch's share of solves that did not converge and its evaluations of f, summed over the periods."""
    if not trainer.solver_stats:
        return None, None, None
    read = [stats.read() for stats in trainer.solver_stats]
    sums = torch.tensor([sum(values) for values in zip(*read, strict=True)], dtype=torch.float64)
    unconverged, evaluations, backward, _ = (trainer.ranks.sum(sums) / trainer.ranks.world).tolist()
    return unconverged / len(read), evaluations, backward
