"""What a person sees of runs on their way. Imported when a run starts: it needs torch."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from rkcnn.cli.summary import clock, draw_course, percent, recall
from rkcnn.record.result import Epoch, Result
from rkcnn.run.job import Job
from rkcnn.run.observer import Observer

REFRESH = 0.2  # seconds between two looks at the position: a step of a small network takes 1 ms
WINDOW = 60.0  # seconds that the rate is measured over: a busy start is forgotten


class Screen(Console):
    """A console whose reader may leave, as `head` does: runs on their way are then asked to stop, as by SIGTERM."""

    closed = False

    def on_broken_pipe(self) -> None:
        self.quiet = self.closed = True
        if not callable(signal.getsignal(signal.SIGTERM)):  # no run is on its way that would keep a checkpoint
            raise BrokenPipeError
        signal.raise_signal(signal.SIGTERM)


class Watch(Observer):
    """Tells what will happen, shows a bar on a terminal or a line an epoch elsewhere, and draws each course."""

    def __init__(self, console: Console, several: bool = False) -> None:
        self.console, self.several = console, several
        self.folders: dict[int, Path] = {}  # by seed
        self.jobs: Sequence[Job] = ()  # those on their way
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[news]}"),
            console=console,
            expand=True,  # the bar takes what the news leaves: 8 of 80 columns
        )
        self._tasks: dict[int, TaskID] = {}
        self._marks: dict[int, deque[tuple[float, int]]] = {}  # (time, images done) of the last minute
        self._looked = 0.0
        self._told = False

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._tasks:
            self._bar.stop()

    def already_finished(self, folder: Path, result: Result) -> None:
        self.folders[result.run.seed] = folder
        self._say(*recall(folder, result))

    def compiling(self, job: Job) -> None:
        if not self._told:  # other seeds share what was compiled
            self._say("compiling the network, which may take a minute")

    def run_started(self, job: Job, note: str) -> None:
        seed = job.run.seed
        self.folders[seed] = job.folder
        if not self._told:
            self._say(*describe_job(job))
            self._told = True
        if note:
            self._say(f"note      {note}")
        stands = _done(job)
        self._say(f"seed      {seed}" + (f", continues at {position(job)}" if stands else ""))
        self._marks[seed] = deque([(time.monotonic(), stands)])
        if self.console.is_terminal:
            total = job.run.recipe.epochs * _epoch(job)
            self._tasks[seed] = self._bar.add_task(
                f"seed {seed}" * self.several, total=total, completed=stands, news=""
            )
            self._bar.start()

    def steps_done(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        now = time.monotonic()
        if now - self._looked < REFRESH:
            return
        self._looked = now
        for job in jobs:
            marks = self._marks[job.run.seed]
            marks.append((now, _done(job)))
            while len(marks) > 2 and now - marks[1][0] > WINDOW:
                marks.popleft()
            if job.run.seed in self._tasks:
                self._bar.update(self._tasks[job.run.seed], completed=_done(job), news=self._news(job))

    def epoch_done(self, job: Job, epoch: Epoch) -> None:
        if not self.console.is_terminal:
            self._say(f"seed {job.run.seed}  " * self.several + self._news(job))

    def run_ended(self, job: Job, result: Result) -> None:
        if job.run.seed in self._tasks:
            self._bar.update(self._tasks[job.run.seed], completed=_done(job), news=self._news(job))
        if job.trainer.ranks.writes:
            self._say(*draw_course(job.folder, result))

    def _news(self, job: Job) -> str:
        """Epoch, the last whole one's loss, training and test error, images/s, time left: briefly beside a bar."""
        brief = bool(self._tasks)
        total, done = job.run.recipe.epochs, _done(job)
        began, stood = self._marks[job.run.seed][0]
        rate = (done - stood) / max(time.monotonic() - began, 1e-9)
        number = min(len(job.history) + brief, total)  # a bar shows the epoch that is going on
        parts = [f"epoch {number:{len(str(total))}}/{total}"]
        if job.history:
            last = job.history[-1]
            held = job.run.held_out
            word = "" if brief else "error "
            parts.append(f"loss {last.loss:.4f}")
            parts.append(f"train {word}{percent(last.error)}")
            parts.append(f"{held} {word}{percent(last.held_out_error)}")
        if rate:
            parts.append(f"{rate:,.0f} {'img' if brief else 'images'}/s")
            parts.append(f"{clock((total * _epoch(job) - done) / rate)} left")
        return (" " if brief else "  ").join(parts)

    def _say(self, *lines: str) -> None:
        for line in lines:
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def describe_job(job: Job) -> list[str]:
    """What will happen: network, data, recipe, device."""
    trainer, recipe, device = job.trainer, job.run.recipe, job.trainer.device
    count, channels, height, width = job.train.pixels.shape
    test = job.predictor.images
    params = sum(p.numel() for p in trainer.network.parameters())
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else _many(torch.get_num_threads(), "thread")
    ranks = f" x {trainer.ranks.world} ranks" if trainer.ranks.world > 1 else ""
    idle = " (does nothing on a cpu)" if (recipe.precision, device.type) == ("tf32", "cpu") else ""
    held = "held out for validation" if test.part.startswith("validation") else "to test with"
    unverified = "" if job.train.verified or ":" in job.run.data else ", UNVERIFIED content"
    return [
        f"network   {job.run.spec}, {params:,} parameters",
        f"data      {job.run.data}: {count:,} images to train on, {len(test):,} {held}, "
        f"{len(job.train.classes)} classes, {height} x {width} x {channels}{unverified}",
        f"recipe    {recipe}: {_many(recipe.epochs, 'epoch')} of "
        f"{_many(trainer.steps, 'step')} of {_many(recipe.batch, 'image')}, lr {recipe.lr:g}",
        f"device    {device} ({where}){ranks}, {recipe.precision}{idle}, {job.engine.kind}",
    ]


def position(job: Job) -> str:
    """The step that comes next."""
    return f"epoch {job.trainer.epoch + 1}, step {job.trainer.step + 1}"


def _done(job: Job) -> int:
    """Images learnt from so far."""
    return job.trainer.epoch * _epoch(job) + min(job.trainer.step * job.run.recipe.batch, _epoch(job))


def _epoch(job: Job) -> int:
    """Images of an epoch: its last batch holds what is left."""
    last = job.trainer.steps - 1
    return last * job.run.recipe.batch + job.trainer.batches.whole(last)


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
