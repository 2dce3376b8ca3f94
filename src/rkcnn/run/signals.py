"""Being asked to stop by Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(Exception):
    """A run was asked to stop, by the signal that the message names; its checkpoint is written."""


@contextmanager
def stop_signals() -> Iterator[list[str]]:
    """Collect the names of signals that ask to stop, so that a run can stop between two steps.

    A second signal raises KeyboardInterrupt at once. Outside the main thread, where Python allows no handlers, the
    list stays empty. Ctrl-C is received also where it was ignored: in a task of Ray, that is how it is cancelled.
    """
    received: list[str] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(signal.Signals(number).name)

    in_main_thread = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGINT) if in_main_thread else ()
    before = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
