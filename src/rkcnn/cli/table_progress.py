"""What a person sees of a table on its way. Needs no torch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from rkcnn.cli.summary import clock, percent
from rkcnn.record.run import Run
from rkcnn.reproduce.event import Event

WORDS = {
    "silent": "nothing was heard for ten minutes; an evaluation may take so long",
    "busy": "another process has it; it is asked for again until it is done",
    "dies": "its process died; it goes on from its last checkpoint",
}
PAUSE = 30.0  # seconds between two lines on the whole, where there is no bar


class Board:
    """The whole table as a bar with time left, and a bar for each run that is on its way; lines in a log.

    `weights` are what the runs cost beside each other: time left is what is left of them, at the preset so far.
    """

    def __init__(self, console: Console, runs: Sequence[Run], weights: Sequence[float]) -> None:
        self.console, self.runs, self.weights = console, runs, weights
        self.shares = [0.0] * len(runs)
        self.ended: dict[int, str] = {}
        self.failed: dict[int, str] = {}
        self._first: dict[int, float] = {}  # the share a run stood at when it was first heard of
        self._began = self._said = time.monotonic()
        self._bars: dict[int, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[news]}"), console=console
        )
        self._whole = self._progress.add_task("all", total=1.0, news="")

    def __enter__(self) -> Board:
        if self.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.console.is_terminal:
            self._progress.stop()

    def hear(self, event: Event) -> None:
        number, run = event.run, self.runs[event.run]
        name = f"{run.spec}  seed {run.seed}"
        if event.what in WORDS:
            self._say(f"{event.what:9} {name}  {event.text or WORDS[event.what]}")
            return
        self.shares[number] = event.share
        if event.what == "begins":
            self._first.setdefault(number, event.share)
            where = f", continues at {100 * event.share:.0f} %" if event.share else ""
            self._say(f"begins    {name}{where}" + (f"  ({event.text})" if event.text else ""))
            if number not in self._bars:  # else it begins once more, its process having died
                self._bars[number] = self._progress.add_task(name, total=1.0, news="")
        elif event.what == "ends":
            self.ended[number] = event.text
            self._say(f"ends      {name}  {outcome(event)}")
        elif event.what == "fails":
            self.failed[number] = event.text
            self.shares[number] = 0.0
            self._say(f"FAILS     {name}  {event.text}")
        if event.what in ("ends", "fails"):
            self._first.setdefault(number, event.share)  # it was finished before anyone asked
            if number in self._bars:
                self._progress.remove_task(self._bars.pop(number))
        elif number in self._bars:
            error = f"error {percent(event.error)}" if event.error is not None else ""
            self._progress.update(self._bars[number], completed=event.share, news=error)
        self._progress.update(self._whole, completed=self.share, news=self.news())
        if not self.console.is_terminal and time.monotonic() - self._said > PAUSE:
            self._say(self.news())

    @property
    def share(self) -> float:
        """Of the whole, weighted."""
        shares = {n: 1.0 if n in self.ended else share for n, share in enumerate(self.shares)}
        return self._weigh(shares) / sum(self.weights)

    def news(self) -> str:
        """3 of 95 runs, 4 %, 1:02:03 left."""
        parts = [f"{len(self.ended)} of {len(self.runs)} runs", f"{100 * self.share:.0f} %"]
        done = self._weigh({n: self.shares[n] - first for n, first in self._first.items() if n not in self.failed})
        over = {*self.ended, *self.failed}  # one that diverged has steps left that nobody will do
        left = self._weigh({n: 1 - share for n, share in enumerate(self.shares) if n not in over})
        if done > 0:
            parts.append(f"{clock(left * (time.monotonic() - self._began) / done)} left")
        return ", ".join(parts)

    def _weigh(self, shares: dict[int, float]) -> float:
        return sum(self.weights[number] * share for number, share in shares.items())

    def _say(self, line: str) -> None:
        self._said = time.monotonic()
        try:
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)
        except OSError:  # the disk that the log is on is full, say: the runs go on, unseen
            self.console.quiet = True


def outcome(event: Event) -> str:
    """error 0.31 %, or how it diverged."""
    return f"error {percent(event.error)}" if event.text == "finished" else event.text
