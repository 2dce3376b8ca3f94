"""Shows how far something is: things of a known number, a bench, and runs while they train.

A line on a terminal is replaced by the next; a log has few lines. Imports no torch before a run starts.
"""

from __future__ import annotations

import math
import signal
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from rkcnn.cli.output import discard, print_on
from rkcnn.cli.summary import describe_finished, save_curves
from rkcnn.error import with_flags
from rkcnn.escape import escape_text
from rkcnn.run.observer import Observer
from rkcnn.use.progress import clock, describe_job, next_step, percent

if TYPE_CHECKING:
    from rkcnn.record.result import Epoch, Result
    from rkcnn.run.job import Job


REFRESH = 0.2  # seconds between two updates: a step of a small network takes 1 ms
WINDOW = 60.0  # seconds over which speed is measured, so that a slow start is forgotten


class StatusLine:
    """One line of text: on a terminal it replaces the line before it, in a log it follows it.

    The line goes away at the end of a `with` block.
    """

    def __init__(self, out: TextIO | None) -> None:
        self._out = out
        self._live = out is not None and out.isatty()
        self._started = time.monotonic()
        self._shown = -math.inf if self._live else self._started

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()

    def _write(self, text: str, now: float) -> None:
        self._shown = now
        self._print(f"\r{text}\033[K" if self._live else f"{text}\n")

    def _print(self, text: str) -> None:
        """Print the text; if it can't be written, as in a log on a full disk, nothing more is shown."""
        assert self._out is not None
        try:
            print(text, end="", file=self._out, flush=True)
        except BrokenPipeError:
            raise
        except OSError:
            discard(self._out)
            self._out, self._live = None, False

    def clear(self) -> None:
        """Remove the line from a terminal, before anything else is written."""
        if self._live and self._shown > -math.inf:
            self._print("\r\033[K")


class CountProgress(StatusLine):
    """Writes "120 of 5,000 pictures, 0:40 left": five times a second to a terminal, where each line replaces the last.

    In a log there is a line every 10 s. Work of less than a second, or of less than 10 s in a log, shows nothing; what
    has shown anything ends with a line that all is done.
    """

    def __init__(self, out: TextIO | None, noun: str) -> None:
        super().__init__(out)
        self._noun = noun
        self._begun = False

    def show(self, done: int, total: int) -> None:
        """Say that so many, which is at least one, are done."""
        now = time.monotonic()
        early = now - self._started < 1 or now - self._shown < (REFRESH if self._live else 10)
        if self._out is None or (early and not (self._begun and done == total)):
            return
        self._begun = True
        left = clock((now - self._started) / done * (total - done))
        self._write(f"{done:,} of {total:,} {self._noun}, {left} left", now)


class BenchProgress(StatusLine):
    """Writes "12 of 70, 1:20 left: ...": to a terminal at each turn, where the line is replaced, else every 10 s.

    A log has a line for each contender that is prepared, which may take a minute where it is compiled.
    """

    _first_turn: float | None = None

    def show(self, what: str, done: int | None, total: int) -> None:
        """Say what is done next; `done` is None while contenders are prepared, whose time nobody knows."""
        now = time.monotonic()
        text = what
        if done is not None:
            if self._first_turn is None:
                self._first_turn = now
            left = f", {clock((now - self._first_turn) / done * (total - done))} left" if done else ""
            text = f"{done} of {total}{left}: {what}"
        if self._out is None or (not self._live and done is not None and now - self._shown < 10):
            return
        self._write(escape_text(text), now)


class StoppingConsole(Console):
    """A console that asks the runs to stop, as SIGTERM does, when its reader leaves, as `head` does."""

    closed = False

    def on_broken_pipe(self) -> None:
        self.quiet = self.closed = True
        if not callable(signal.getsignal(signal.SIGTERM)):  # no run is in progress that would keep a checkpoint
            raise BrokenPipeError
        signal.raise_signal(signal.SIGTERM)


class _Position(NamedTuple):
    """How far a run was at some time: up to the last step whose time is known."""

    time: float
    training_seconds: float  # of its steps alone
    images: int


class RunProgress(Observer):
    """Prints what will be trained, then a bar on a terminal or one line an epoch elsewhere, and draws the curves."""

    def __init__(self, console: Console, several: bool = False) -> None:
        self.console, self.several = console, several
        self.folders: dict[int, Path] = {}  # of each run, by seed
        self.jobs: Sequence[Job] = ()  # those that are trained side by side, including those that have ended
        self.ended: set[int] = set()  # the seeds of runs that have finished or diverged
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[status]}"),
            console=console,
            expand=True,  # the bar takes the columns that the status leaves: 8 of 80
        )
        self._tasks: dict[int, TaskID] = {}
        self._positions: dict[int, deque[_Position]] = {}  # in the last minute, by seed
        self._last_update = 0.0
        self._described = False

    def __enter__(self) -> RunProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._tasks:
            self._bar.stop()

    def already_finished(self, folder: Path, result: Result) -> None:
        self.folders[result.run.seed] = folder
        self._print(*describe_finished(folder, result))

    def compiling(self, job: Job) -> None:
        if not self._described:  # other seeds share what was compiled
            self._print("compiling the network, which may take a minute")

    def run_started(self, job: Job, note: str) -> None:
        seed = job.run.seed
        self.folders[seed] = job.folder
        if not self._described:
            self._print(*describe_job(job))
            self._described = True
        if note:
            self._print(f"note      {with_flags(note)}")
        done = _images_before(job, job.trainer.step)
        self._print(f"seed      {seed}" + (f", continues at {next_step(job)}" if done else ""))
        self._positions[seed] = deque([_position(job, job.trainer.step)])
        if self.console.is_terminal:
            total = job.run.recipe.epochs * _images_of_epoch(job)
            name = f"seed {seed}" * self.several
            self._tasks[seed] = self._bar.add_task(name, total=total, completed=done, status="")
            self._bar.start()

    def steps_done(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        now = time.monotonic()
        if now - self._last_update < REFRESH:
            return
        self._last_update = now
        for job in jobs:
            if job.trainer.finished or job.run.seed in self.ended:
                continue
            position = _position(job, job.trainer.step - 1)  # the last step is not yet in the trainer's seconds
            positions = self._positions[job.run.seed]
            positions.append(position)
            while len(positions) > 2 and now - positions[1].time > WINDOW:
                positions.popleft()
            self._update_bar(job, position)

    def epoch_done(self, job: Job, epoch: Epoch) -> None:
        if not self.console.is_terminal:
            status = self._status(job, _position(job, job.trainer.step))
            self._print(f"seed {job.run.seed}  " * self.several + status)

    def run_ended(self, job: Job, result: Result) -> None:
        self.ended.add(job.run.seed)
        self._update_bar(job, _position(job, job.trainer.step))
        if job.trainer.ranks.writes:
            self._print(*save_curves(job.folder, result))

    def _update_bar(self, job: Job, now: _Position) -> None:
        if job.run.seed in self._tasks:
            self._bar.update(self._tasks[job.run.seed], completed=now.images, status=self._status(job, now))

    def _status(self, job: Job, now: _Position) -> str:
        """Return the epoch, the last complete epoch's loss and errors, images/s and the time left; short for a bar.

        images/s are those trained on in a second of training steps, as in the record; the time left counts
        evaluations and checkpoints too.
        """
        short = bool(self._tasks)
        epochs = job.run.recipe.epochs
        number = len(job.history) or 1  # that of the loss and the errors beside it; there are none in the first epoch
        parts = [f"epoch {number:{len(str(epochs))}}/{epochs}"]
        if job.history:
            last = job.history[-1]
            held_out = job.run.held_out
            error = "" if short else "error "
            parts.append(f"loss {last.loss:.4f}")
            parts.append(f"train {error}{percent(last.training_error)}")
            parts.append(f"{held_out} {error}{percent(last.held_out_error)}")
        start = self._positions[job.run.seed][0]
        images = now.images - start.images
        if images and now.training_seconds > start.training_seconds:
            rate = images / (now.training_seconds - start.training_seconds)
            parts.append(f"{rate:,.0f} {'img' if short else 'images'}/s")
        if images:
            left = epochs * _images_of_epoch(job) - now.images
            parts.append(f"{clock(left * (now.time - start.time) / images)} left")
        return (" " if short else "  ").join(parts)

    def _print(self, *lines: str) -> None:
        for line in lines:
            print_on(self.console, line)


def _position(job: Job, step: int) -> _Position:
    """Return the position before that step of the current epoch."""
    seconds = sum(epoch.seconds for epoch in job.history) + job.trainer.seconds
    return _Position(time.monotonic(), seconds, _images_before(job, step))


def _images_before(job: Job, step: int) -> int:
    """Return how many images the run was trained on before that step of the current epoch."""
    in_epoch = _images_of_epoch(job)
    return job.trainer.epoch * in_epoch + min(step * job.run.recipe.batch, in_epoch)


def _images_of_epoch(job: Job) -> int:
    """Return how many images an epoch has; its last batch may be smaller than the others."""
    last = job.trainer.steps - 1
    return last * job.run.recipe.batch + job.trainer.batches.count_images(last)
