"""One run on its way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rkcnn.data.images import Images
from rkcnn.evaluation.predictor import Predictor
from rkcnn.fit.checkpoint import keep, resume, state_of
from rkcnn.fit.engine import Engine, start_engine
from rkcnn.fit.epoch import TrainingEpoch
from rkcnn.fit.ranks import Ranks
from rkcnn.fit.trainer import Trainer
from rkcnn.model.create import create_model
from rkcnn.record.result import Epoch
from rkcnn.record.run import Run
from rkcnn.record.shorter import find_shorter
from rkcnn.record.source import source_hash
from rkcnn.run.device import set_precision

QUICK = 0.02  # a checkpoint that takes a larger share of the time between two is kept less often


@dataclass
class Job:
    """One run on its way: its folder, its trainer, and what is known of it so far."""

    run: Run
    folder: Path
    train: Images
    predictor: Predictor
    engine: Engine
    history: list[Epoch] = field(default_factory=list)
    kept: float = field(default_factory=time.monotonic)
    cost: float = 0.0  # seconds that the last checkpoint took
    together: int = 1  # runs side by side, this one among them: they share time and memory

    @property
    def trainer(self) -> Trainer:
        return self.engine.trainer

    def keep(self) -> bool:
        """A checkpoint, unless the loss of this epoch is no longer finite: the last good one shall stay."""
        self.engine.wait()
        began = time.monotonic()
        sound = self.trainer.sound
        if sound:
            facts = identity(self.run.as_dict(), self.train, self.predictor.images)
            self.trainer.ranks.first(
                lambda: keep(self.folder, self.trainer, facts, [asdict(epoch) for epoch in self.history])
            )
        self.kept = time.monotonic()
        self.cost = self.kept - began
        return sound

    def due(self, pause: float) -> bool:
        """Whether a checkpoint is due: after `pause` seconds, or longer where keeping one takes long."""
        return time.monotonic() - self.kept > pause * max(1.0, self.cost / (QUICK * pause) if pause else 1.0)

    def judge(self, epoch: TrainingEpoch) -> Epoch:
        """Ask the network about the test images, and put the answer beside what the epoch came to."""

        def ask() -> float:
            with averaged(self.trainer):
                return self.predictor.error(self.predictor.predictions(self.trainer.network))

        self.history.append(Epoch(**asdict(epoch), test_error=self.trainer.ranks.first(ask), source=source_hash()))
        return self.history[-1]


def start_job(
    run: Run, folder: Path, training: Images, test: Images, device: torch.device, engine: str, ranks: Ranks
) -> tuple[Job, str]:
    """A run at the place where it stood, and a line on what there is to know about that."""
    set_precision(run.recipe.precision)
    trainer = Trainer(build(run, training), training, run.recipe, run.seed, device, ranks)

    def go_on() -> tuple[list[dict[str, Any]], str, int, int]:
        history, note = resume(folder, trainer, identity(run.as_dict(), training, test))
        untouched = not history and trainer.step == 0
        if untouched and (shorter := find_shorter(run, folder, checksums(training, test))) is not None:
            history, passed = resume(shorter.folder, trainer, identity(shorter.run.as_dict(), training, test))
            note = "; ".join(filter(None, (passed, f"goes on from the {len(history)} epochs in {shorter.folder}")))
        others = sum(epoch["source"] != source_hash() for epoch in history)
        if others:
            note = "; ".join(filter(None, (note, f"{others} of its epochs were made by other source")))
        return history, note, trainer.epoch, trainer.step

    history, note, trainer.epoch, trainer.step = ranks.first(go_on)
    ranks.follow(state_of(trainer).values())
    chosen, why = start_engine(engine, trainer)
    job = Job(
        run,
        folder,
        training,
        Predictor(test, device, run.recipe.precision),
        chosen,
        [Epoch(**epoch) for epoch in history],
    )
    return job, "; ".join(filter(None, (why, note)))


def build(run: Run, images: Images) -> nn.Module:
    """The network of a run with its first weights: a function of the run alone, whatever device it goes to."""
    torch.manual_seed(run.seed)
    recipe = run.recipe
    return create_model(run.spec, len(images.classes), images.pixels.shape[1], recipe.dropout, recipe.init)


def identity(run: dict[str, Any], training: Images, test: Images) -> dict[str, Any]:
    """What a checkpoint must be of: the run, and the very images, which own sets don't say by their name."""
    return run | checksums(training, test)


def checksums(training: Images, test: Images) -> dict[str, str]:
    """Of the pixels and labels that a run learns from and is judged by."""
    return {
        "train_sha256": training.pixels_sha256,
        "train_labels_sha256": training.labels_sha256,
        "test_sha256": test.pixels_sha256,
        "test_labels_sha256": test.labels_sha256,
    }


@contextmanager
def averaged(trainer: Trainer) -> Iterator[None]:
    """The network with the running average of its weights, if the recipe keeps one."""
    if not trainer.averaged:
        yield
        return
    parameters = [p.data for p in trainer.network.parameters()]
    kept = [p.clone() for p in parameters]
    torch._foreach_copy_(parameters, trainer.averaged)
    try:
        yield
    finally:
        torch._foreach_copy_(parameters, kept)
