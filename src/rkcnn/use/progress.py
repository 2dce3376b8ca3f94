"""Progress of a run for Python, as plain lines, one for each epoch; and numbers in words. Imports no torch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rkcnn.escape import escape_text
from rkcnn.record.result import find_other_code
from rkcnn.run.advice import advise_after
from rkcnn.run.observer import Observer

if TYPE_CHECKING:
    from rkcnn.record.result import Epoch, Result
    from rkcnn.record.run import Run
    from rkcnn.run.job import Job


class PrintedProgress(Observer):
    """Prints what is trained, a line for each epoch with the time that is left, and where the result is.

    With `several` runs, which differ in their seeds, every line but the first ones begins with the seed.
    """

    def __init__(self, several: bool = False) -> None:
        self._several = several
        self._started: dict[Run, tuple[float, int]] = {}  # when, and how many epochs an earlier call had trained

    def already_finished(self, folder: Path, result: Result) -> None:
        end = f"error {percent(result.error)}" if result.finished else result.status
        self._print(result.run, f"already trained: {end}, in {folder}; again=True trains it once more")
        for sentence in say_other_code(result):
            self._print(result.run, f"note      {sentence}")

    def run_started(self, job: Job, note: str) -> None:
        for line in describe_job(job) if not self._started else []:
            _print(line)
        self._started[job.run] = time.monotonic(), len(job.history)
        if note:
            self._print(job.run, f"note      {note}")
        if job.trainer.epoch or job.trainer.step:
            self._print(job.run, f"continues at {next_step(job)}")

    def epoch_done(self, job: Job, epoch: Epoch) -> None:
        total, done = job.run.recipe.epochs, epoch.number + 1
        began, before = self._started[job.run]
        left = (time.monotonic() - began) / max(done - before, 1) * (total - done)
        self._print(
            job.run,
            f"epoch {done:{len(str(total))}}/{total}  loss {epoch.loss:.4f}  "
            f"train error {percent(epoch.training_error)}  "
            f"{job.run.held_out} error {percent(epoch.held_out_error)}  {clock(left)} left",
        )

    def run_ended(self, job: Job, result: Result) -> None:
        end = f"{job.run.held_out} error {percent(result.error)}" if result.finished else result.status
        for advice in advise_after(result):
            self._print(job.run, f"note      {advice}")
        self._print(job.run, f"{end}, in {job.folder}")

    def _print(self, run: Run, line: str) -> None:
        _print(f"seed {run.seed}  {line}" if self._several else line)


def say_other_code(result: Result) -> list[str]:
    """Say which epochs of a run were computed by a different version of the code, or of a registered step or method."""
    return [
        f"{other.epochs} of its epochs were computed by a different version of the code (commit "
        f"{other.commit or 'unknown'}, source {other.source})"
        for other in find_other_code(result.stretches, result.run.network)
    ]


def describe_job(job: Job) -> list[str]:
    """Return what will be trained: network, data, recipe, device."""
    import torch

    trainer, recipe, device = job.trainer, job.run.recipe, job.trainer.device
    images, channels, height, width = job.train.pixels.shape
    test = job.predictor.images
    params = sum(p.numel() for p in trainer.network.parameters())
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else count(torch.get_num_threads(), "thread")
    ranks = f" x {trainer.ranks.world} ranks" if trainer.ranks.world > 1 else ""
    no_effect = " (has no effect on a cpu)" if (recipe.precision, device.type) == ("tf32", "cpu") else ""
    purpose = "held out for validation" if job.run.held_out == "validation" else "to test on"
    origin = "" if job.train.verified else f", {job.train.origin}"
    return [
        f"network   {job.run.network}, {params:,} parameters",
        f"data      {job.run.data}: {images:,} images to train on, {len(test):,} {purpose}, "
        f"{len(job.train.classes)} classes, {height} x {width} x {channels}{origin}",
        f"recipe    {recipe}: {count(recipe.epochs, 'epoch')} of "
        f"{count(trainer.steps, 'step')} of {count(recipe.batch, 'image')}, {recipe.describe_schedule()}",
        f"device    {device} ({where}){ranks}, {recipe.precision}{no_effect}, {job.engine.kind}",
    ]


def next_step(job: Job) -> str:
    """Return the position of the step that comes next, counted from 1."""
    return f"epoch {job.trainer.epoch + 1}, step {job.trainer.step + 1}"


def percent(error: float | None) -> str:
    """Return an error, which is a fraction, in percent: 0.013 is 1.30 %; - where there is none."""
    return "-" if error is None else f"{100 * error:.2f} %"


def clock(seconds: float) -> str:
    """Return a time as 1:05, as 2:03:04 from one hour on, or as 4 d 2 h from three days on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 72:
        return f"{hours // 24:,} d {hours % 24} h"
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: 1 epoch, 18 epochs."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _print(line: str) -> None:
    """Print one line, at once, with control characters escaped, which a path or the name of a class may hold."""
    print(escape_text(line), flush=True)
