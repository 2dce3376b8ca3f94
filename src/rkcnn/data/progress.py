"""Shows the progress of a download: bytes, rate and time left, for a terminal or a log."""

from __future__ import annotations

import math
import time
from typing import TextIO

from rkcnn.error import shorten_message
from rkcnn.escape import escape_text


class Progress:
    """Writes notes and progress lines to `out`, or nowhere if it is None."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out
        self._live = out is not None and out.isatty()
        self._started, self._from, self._shown = 0.0, 0, -math.inf
        self._unfinished = False  # whether the last line on a terminal still lacks its newline

    def note(self, text: str) -> None:
        """Write one line."""
        self.stop()
        if self._out is not None:
            print(shorten_message(escape_text(text)), file=self._out, flush=True)

    def start(self, done: int) -> None:
        """Begin a transfer of which `done` bytes are here already."""
        self.stop()
        self._started, self._from, self._shown = time.monotonic(), done, -math.inf

    def advance(self, name: str, done: int, total: int | None) -> None:
        """Show how far the transfer is: five times a second on a terminal, every five seconds in a log."""
        now = time.monotonic()
        last = total is not None and done >= total
        if self._out is None or (now - self._shown < (0.2 if self._live else 5.0) and not last):
            return
        self._shown = now
        text = describe(escape_text(name), done, total, (done - self._from) / max(now - self._started, 1e-6))
        print(
            f"\r{text}\033[K" if self._live else text,
            end="\n" if last or not self._live else "",
            file=self._out,
        )
        self._out.flush()
        self._unfinished = self._live and not last

    def stop(self) -> None:
        """End an unfinished line, so that whatever is written next begins a new one."""
        if self._out is not None and self._unfinished:
            print(file=self._out, flush=True)
        self._unfinished = False


def describe(name: str, done: int, total: int | None, rate: float) -> str:
    """Return a line with the name, the bytes done and in all, the rate in bytes a second and the time left."""
    text = f"{name}: {done / 1e6:.1f} MB"
    if total is not None:
        text = f"{name}: {done / 1e6:.1f} of {total / 1e6:.1f} MB"
    text += f", {rate / 1e6:.1f} MB/s"
    if total is not None and rate > 0:
        minutes, seconds = divmod(round((total - done) / rate), 60)
        text += f", {minutes}:{seconds:02d} left"
    return text
