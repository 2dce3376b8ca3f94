"""Shows a table while its runs train: how much is done, how long is left, what happens to each run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from rkcnn.cli.output import print_on
from rkcnn.error import with_flags
from rkcnn.record.run import Run
from rkcnn.reproduce.events import Event
from rkcnn.use.progress import clock, percent

MESSAGES = {
    "silent": "nothing was reported for ten minutes; an evaluation may take so long",
    "busy": "another process is training it; it is tried again until it is done",
    "crashes": "its process died; the run continues from its last checkpoint",
}
STATUS_SECONDS = 30.0  # between two lines about the whole table, where there is no bar


class TableProgress:
    """Shows a bar for the whole table with the time left and one for each run in progress; lines in a log.

    `weights` are the relative costs of the runs. The time left is that of the remaining cost at the speed so far.
    """

    def __init__(self, console: Console, runs: Sequence[Run], weights: Sequence[float]) -> None:
        self.console, self.runs, self.weights = console, runs, weights
        self.fractions = [0.0] * len(runs)  # of each run that are done
        self.ended: dict[int, str] = {}  # the status of each run that has a result, by index
        self.failed: dict[int, str] = {}  # why each run that failed did, by index
        self._first: dict[int, float] = {}  # the fraction of each run that was done before it was first reported
        self._start = self._last_line = time.monotonic()
        self._bars: dict[int, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[status]}"), console=console
        )
        self._whole = self._progress.add_task("all", total=1.0, status="")

    def __enter__(self) -> TableProgress:
        if self.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.console.is_terminal:
            self._progress.stop()

    def show(self, event: Event) -> None:
        """Take in an event of a run and show it."""
        index, run = event.index, self.runs[event.index]
        name = f"{run.network}  seed {run.seed}"
        message = with_flags(event.message)
        if event.kind in MESSAGES:
            self._print(f"{event.kind:9} {name}  {message or MESSAGES[event.kind]}")
            return
        self.fractions[index] = event.fraction
        if event.kind == "begins":
            self._first.setdefault(index, event.fraction)
            where = f", continues at {100 * event.fraction:.0f} %" if event.fraction else ""
            self._print(f"begins    {name}{where}" + (f"  ({message})" if message else ""))
            if index not in self._bars:  # it begins again after a crash
                self._bars[index] = self._progress.add_task(name, total=1.0, status="")
        elif event.kind == "ends":
            self.ended[index] = message
            self._print(f"ends      {name}  {describe_end(event)}")
        elif event.kind == "fails":
            self.failed[index] = message
            self.fractions[index] = 0.0
            self._print(f"FAILS     {name}  {message}")
        if event.kind in ("ends", "fails"):
            self._first.setdefault(index, event.fraction)  # it was finished before this command
            if index in self._bars:
                self._progress.remove_task(self._bars.pop(index))
        elif index in self._bars:
            error = f"error {percent(event.error)}" if event.error is not None else ""
            self._progress.update(self._bars[index], completed=event.fraction, status=error)
        self._progress.update(self._whole, completed=self.fraction, status=self.status())
        if not self.console.is_terminal and time.monotonic() - self._last_line > STATUS_SECONDS:
            self._print(self.status())

    @property
    def fraction(self) -> float:
        """The fraction of the table's cost that is done."""
        fractions = {i: 1.0 if i in self.ended else fraction for i, fraction in enumerate(self.fractions)}
        return self._cost(fractions) / sum(self.weights)

    def status(self) -> str:
        """Return how far the table is, as in "3 of 95 runs, 4 %, 1:02:03 left"."""
        parts = [f"{len(self.ended)} of {len(self.runs)} runs", f"{100 * self.fraction:.0f} %"]
        done = self._cost({i: self.fractions[i] - first for i, first in self._first.items() if i not in self.failed})
        over = {*self.ended, *self.failed}  # the remaining steps of a run that diverged will not be done
        left = self._cost({i: 1 - fraction for i, fraction in enumerate(self.fractions) if i not in over})
        if done > 0:
            parts.append(f"{clock(left * (time.monotonic() - self._start) / done)} left")
        return ", ".join(parts)

    def _cost(self, fractions: dict[int, float]) -> float:
        return sum(self.weights[index] * fraction for index, fraction in fractions.items())

    def _print(self, line: str) -> None:
        self._last_line = time.monotonic()
        print_on(self.console, line)


def describe_end(event: Event) -> str:
    """Return the error of a run that ended, or how it diverged."""
    return f"error {percent(event.error)}" if event.message == "finished" else event.message
