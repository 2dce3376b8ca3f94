"""One run while it is trained: how it starts or continues, its checkpoints, its evaluation and its result."""

from __future__ import annotations

import io
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rkcnn import __version__
from rkcnn.data.images import Images
from rkcnn.disk import write_atomically
from rkcnn.error import InputError
from rkcnn.evaluation.metrics import Predictor
from rkcnn.evaluation.weights import NetworkDescription, pack_weights
from rkcnn.fit.checkpoint import REMEDY, load_checkpoint, save_checkpoint
from rkcnn.fit.engine import Engine, start_engine
from rkcnn.fit.epoch import TrainingEpoch
from rkcnn.fit.norm_statistics import recomputed_norms
from rkcnn.fit.ranks import Ranks
from rkcnn.fit.trainer import Trainer
from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.record.metrics import MetricsFile
from rkcnn.record.result import Epoch, Result, Stretch, find_other_code, read_progress
from rkcnn.record.run import Config, Run
from rkcnn.record.run_state import FinishedRun, find_shorter_run
from rkcnn.record.source import current_source
from rkcnn.run.advice import advise_before, constant_error
from rkcnn.run.device import describe_machine, peak_bytes
from rkcnn.run.settings import INIT_FROM, InitialWeights, load_initial_weights
from rkcnn.run_folder import CONFIG, LABELS, PREDICTIONS, REPLACED_RESULT, RESULT, WEIGHTS

CHECKPOINT_SHARE = 0.02  # the largest share of the time that writing checkpoints may take; slow ones become rarer


@dataclass
class Job:
    """One run while it is trained: its folder, its engine, and its history so far."""

    run: Run
    folder: Path
    train: Images
    predictor: Predictor  # of the held-out images
    engine: Engine
    history: list[Epoch] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)  # which code computed which epochs; the last is ours
    checkpoint_time: float = field(default_factory=time.monotonic)  # when the last checkpoint was written
    checkpoint_seconds: float = 0.0  # how long it took to write the last checkpoint
    together: int = 1  # how many runs are trained side by side, including this one
    init_from: str = ""  # the name of the trained weights that it starts from; empty where they are new
    outcome: dict[str, bytes] = field(default_factory=dict)  # after the last epoch: files of weights and predictions

    def __post_init__(self) -> None:
        self.metrics = MetricsFile(self.folder, self.run, REMEDY)

    @property
    def trainer(self) -> Trainer:
        return self.engine.trainer

    def begin_files(self) -> None:
        """Write the run's settings, and the metrics of the epochs so far; only rank 0 writes."""
        run, images = self.run, self.train
        config = Config(run.network, images.name, images.own, run.validation, run.recipe, run.seed)

        def write() -> None:
            write_atomically(self.folder / CONFIG, config.to_json(), REMEDY)
            self.metrics.write(self.history)

        self.trainer.ranks.from_rank_0(write)

    def save_checkpoint(self) -> bool:
        """Write a checkpoint and return True, or return False if the loss is no longer finite.

        The last checkpoint with a finite loss stays then.
        """
        self.engine.wait()
        start = time.monotonic()
        finite = self.trainer.is_finite
        if finite:
            facts = identify(self.run, self.train, self.predictor.images)
            history = {"epochs": list(map(asdict, self.history)), "stretches": list(map(asdict, self.stretches))}
            save_checkpoint(self.folder, self.trainer, facts, history)
        self.checkpoint_time = time.monotonic()
        self.checkpoint_seconds = self.checkpoint_time - start
        return finite

    def checkpoint_is_due(self, interval: float) -> bool:
        """Whether the last checkpoint is older than `interval` seconds and than CHECKPOINT_SHARE asks for.

        The second keeps the time spent on writing checkpoints below that share; an interval of 0 has no such limit.
        """
        slow = self.checkpoint_seconds / CHECKPOINT_SHARE if interval > 0 else 0.0
        return time.monotonic() - self.checkpoint_time > max(interval, slow)

    def evaluate(self, epoch: TrainingEpoch) -> Epoch:
        """Measure the error on the held-out images and add the epoch to the history."""
        error = self.predictor.error(self._predict())
        self.history.append(Epoch(**asdict(epoch), held_out_error=error))
        self.stretches[-1] = replace(self.stretches[-1], epochs=self.stretches[-1].epochs + 1)
        if self.trainer.ranks.writes:
            self.metrics.append(self.history)
        return self.history[-1]

    def _predict(self) -> Tensor:
        """Return the classes of the held-out images; after the last epoch, prepare the files of `write_result` too."""
        trainer, network = self.trainer, self.trainer.network
        with averaged_weights(trainer), recomputed_norms(trainer):
            predictions = trainer.ranks.from_rank_0(lambda: self.predictor.predictions(network).cpu())
            if trainer.finished:
                metadata = NetworkDescription.of(self.run.network, self.train).as_metadata()
                weights = pack_weights(network.state_dict(), metadata)
                self.outcome = {WEIGHTS: weights, PREDICTIONS: _npy(predictions)}
        return predictions

    def write_result(self, status: str) -> Result:
        """Write the weights and predictions of a finished run, then its result; only rank 0 writes."""
        if status == "finished" and not self.outcome:  # it was continued after its last epoch
            self._predict()
        return self.trainer.ranks.from_rank_0(lambda: self._write_result(status))

    def _write_result(self, status: str) -> Result:
        result = self._make_result(status)
        if result.finished:
            for name, content in (self.outcome | {LABELS: _npy(self.predictor.images.labels)}).items():
                write_atomically(self.folder / name, content, REMEDY)
        self.metrics.write(self.history)
        write_atomically(self.folder / RESULT, result.to_json(), REMEDY)
        (self.folder / REPLACED_RESULT).unlink(missing_ok=True)
        return result

    def _make_result(self, status: str) -> Result:
        trainer, images = self.trainer, self.train
        errors = [epoch.held_out_error for epoch in self.history]
        seconds = sum(epoch.seconds for epoch in self.history)
        last = self.history[-1] if self.history else None
        height, width = images.pixels.shape[2:]
        costs = cost(trainer.network, (height, width))
        return Result(
            run=self.run,
            status=status,
            error=errors[-1] if errors and status == "finished" else None,
            error_best=min(errors, default=None),
            epochs=tuple(self.history),
            seconds=seconds,
            images_per_second=sum(epoch.images for epoch in self.history) / seconds if seconds else 0.0,
            peak_bytes=peak_bytes(trainer.device),
            params=costs.params,
            flops=costs.flops,
            paper_flops=costs.paper_flops,
            evaluations=(last and last.evaluations) or costs.evaluations,
            unconverged=last.unconverged if last else None,
            engine=self.engine.kind,
            engine_note=self.engine.note,
            data={
                "verified": images.verified,
                **checksums(images, self.predictor.images),
                "held_out_images": len(self.predictor.images),
                "classes": list(images.classes),
                "own": asdict(images.own),
                "constant_error": constant_error(images, self.predictor.images),
                **({INIT_FROM: self.init_from} if self.init_from else {}),
            },
            versions={"rkcnn": __version__, "torch": torch.__version__, "python": platform.python_version()},
            machine=describe_machine(trainer.device) | {"ranks": trainer.ranks.world, "together": self.together},
            stretches=tuple(self.stretches),
        )


def start_job(
    run: Run,
    folder: Path,
    training: Images,
    test: Images,
    device: torch.device,
    engine: str,
    ranks: Ranks,
    again: bool = False,
    init_from: Path | None = None,
) -> tuple[Job, str]:
    """Make the job of a run, which continues from its newest checkpoint or from a shorter run's last one.

    A repetition, which `again` asks for, repeats every epoch and so continues from no shorter run. `init_from` is the
    run or file whose weights it starts from, if its recipe names some.
    Returns the job, and a note on what is unusual about it; the note is empty where there is nothing to say.
    """
    network = build(run, training)
    initial = load_initial_weights(network, run.recipe, init_from, training.classes)
    trainer = Trainer(network, training, run.recipe, run.seed, device, ranks)
    epochs, stretches, notes = _restore(run, folder, trainer, test, again)
    notes += _describe_start(run, trainer, initial, stretches)
    predictor = Predictor(test, device, run.recipe.precision)
    job = Job(run, folder, training, predictor, start_engine(engine, trainer), list(epochs))
    job.stretches = _add_stretch(stretches, run.network)
    job.init_from = initial.name if initial else ""
    return job, "; ".join(filter(None, notes))


def _restore(
    run: Run, folder: Path, trainer: Trainer, test: Images, again: bool
) -> tuple[tuple[Epoch, ...], tuple[Stretch, ...], list[str]]:
    """Load the checkpoint that the run continues from, if there is one; return the history in it, and notes on it."""
    training = trainer.batches.images

    def load(place: Path, owner: Run) -> tuple[dict[str, Any] | None, str]:
        return load_checkpoint(place, trainer, identify(owner, training, test), read)

    def read(history: dict[str, Any]) -> tuple[Run, tuple[Epoch, ...], tuple[Stretch, ...]]:
        return read_progress(run.as_dict(), history["epochs"], history["stretches"])

    def find_shorter() -> FinishedRun | None:
        repeated = again or (folder / REPLACED_RESULT).exists()  # which stays until the repetition has a result
        return None if repeated else find_shorter_run(run, folder, checksums(training, test))

    history, note = load(folder, run)
    notes = [note]
    if (trainer.epoch, trainer.step) == (0, 0) and (shorter := trainer.ranks.from_rank_0(find_shorter)):
        try:
            history, note = load(shorter.folder, shorter.run)
            notes += [note, f"continues from the {trainer.epoch} epochs in {shorter.folder}"]
        except InputError as error:  # which must not stop this run
            notes.append(f"starts anew: {error}")
    _, epochs, stretches = read(history or {"epochs": [], "stretches": []})
    return epochs, stretches, notes


def _describe_start(
    run: Run, trainer: Trainer, initial: InitialWeights | None, stretches: tuple[Stretch, ...]
) -> list[str]:
    """Return notes on the weights that a run starts from, on its settings, and on epochs of other code."""
    training = trainer.batches.images
    notes = [initial.describe(training.classes)] if initial else []
    if run.recipe.head_only:
        notes.append(f"the classifier's {sum(p.numel() for p in trainer.trained.values()):,} parameters are trained")
    notes += advise_before(training, trainer)
    if others := sum(stretch.epochs for stretch in find_other_code(stretches, run.network)):
        notes.append(f"{others} of its epochs were computed by a different version of the code")
    return notes


def _add_stretch(stretches: tuple[Stretch, ...], network: str) -> list[Stretch]:
    """Return the stretches that have epochs, and last that of the code that is running."""
    here = Stretch(**asdict(current_source(network=network)), epochs=0)
    if stretches and replace(stretches[-1], epochs=0) == here:
        here, stretches = stretches[-1], stretches[:-1]
    return [*(stretch for stretch in stretches if stretch.epochs), here]


def build(run: Run, images: Images) -> nn.Module:
    """Build the run's network with new weights, which depend on the run alone and not on the device."""
    torch.manual_seed(run.seed)
    recipe = run.recipe
    return create_model(run.network, len(images.classes), images.pixels.shape[1], recipe.dropout, recipe.init)


def identify(run: Run, training: Images, test: Images) -> dict[str, Any]:
    """Return what a checkpoint must match: the run, and its images' checksums, which a name alone doesn't fix."""
    return run.as_dict() | checksums(training, test)


def checksums(training: Images, test: Images) -> dict[str, str]:
    """Return the checksums of the pixels and labels that a run is trained and evaluated on."""
    return {
        "train_sha256": training.pixels_sha256,
        "train_labels_sha256": training.labels_sha256,
        "test_sha256": test.pixels_sha256,
        "test_labels_sha256": test.labels_sha256,
    }


@contextmanager
def averaged_weights(trainer: Trainer) -> Iterator[None]:
    """Give the network the running average of its weights for a while, if the recipe keeps one."""
    if not trainer.averaged:
        yield
        return
    parameters = [p.data for p in trainer.trained.values()]
    saved = [p.clone() for p in parameters]
    torch._foreach_copy_(parameters, trainer.averaged)
    try:
        yield
    finally:
        torch._foreach_copy_(parameters, saved)


def _npy(predictions: Tensor) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, predictions.cpu().numpy().astype(np.int16))
    return buffer.getvalue()
