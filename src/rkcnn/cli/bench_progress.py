"""Shows how far a bench is: what it measures now, and the time left."""

from __future__ import annotations

import math
import time
from typing import TextIO

from rkcnn.escape import escape_text
from rkcnn.use.progress import clock


class BenchProgress:
    """Writes "12 of 70, 1:20 left: ...": to a terminal at each turn, where the line is replaced, else every 10 s.

    A log has a line for each contender that is prepared, which may take a minute where it is compiled.
    """

    def __init__(self, out: TextIO | None) -> None:
        self._out = out
        self._live = out is not None and out.isatty()
        self._shown = -math.inf if self._live else time.monotonic()
        self._first_turn: float | None = None

    def show(self, what: str, done: int | None, total: int) -> None:
        """Say what is done next; `done` is None while contenders are prepared, whose time nobody knows."""
        now = time.monotonic()
        if done is not None and self._first_turn is None:
            self._first_turn = now
        if self._out is None or (not self._live and done is not None and now - self._shown < 10):
            return
        self._shown = now
        text = what
        if done is not None:
            assert self._first_turn is not None
            left = f", {clock((now - self._first_turn) / done * (total - done))} left" if done else ""
            text = f"{done} of {total}{left}: {what}"
        text = escape_text(text)
        print(f"\r{text}\033[K" if self._live else text, end="" if self._live else "\n", file=self._out, flush=True)

    def clear(self) -> None:
        """Remove the line from a terminal, before anything else is written."""
        if self._out is not None and self._live and self._shown > -math.inf:
            print("\r\033[K", end="", file=self._out, flush=True)
