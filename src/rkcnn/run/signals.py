"""Being asked to stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_signals() -> Iterator[list[str]]:
    """Collects SIGTERM and Ctrl-C instead of dying of them, so that a run stops between two steps."""
    asked: list[str] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:  # a second time: at once
            raise KeyboardInterrupt
        asked.append(signal.Signals(number).name)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
