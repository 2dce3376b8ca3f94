"""Shows how many things of a known number are done, on a terminal or in a log."""

from __future__ import annotations

import math
import time
from typing import TextIO


class CountProgress:
    """Writes "120 of 5,000 pictures": five times a second to a terminal, where the line is replaced, else every 10 s.

    Where the work takes less than a second, or less than 10 s in a log, nothing is written.
    """

    def __init__(self, out: TextIO | None, noun: str) -> None:
        self._out, self._noun = out, noun
        self._live = out is not None and out.isatty()
        self._started = time.monotonic()
        self._shown = -math.inf if self._live else self._started

    def show(self, done: int, total: int) -> None:
        """Say that so many are done."""
        now = time.monotonic()
        if self._out is None or now - self._started < 1 or now - self._shown < (0.2 if self._live else 10):
            return
        self._shown = now
        text = f"{done:,} of {total:,} {self._noun}"
        print(f"\r{text}\033[K" if self._live else text, end="" if self._live else "\n", file=self._out, flush=True)

    def clear(self) -> None:
        """Remove the line from a terminal, before anything else is written."""
        if self._out is not None and self._live and self._shown > -math.inf:
            print("\r\033[K", end="", file=self._out, flush=True)
