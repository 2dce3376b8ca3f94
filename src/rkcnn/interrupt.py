"""Ctrl-C while Python imports modules ends the command at once and without a message."""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as typing's, whose import takes longer than all of this
if TYPE_CHECKING:
    from types import FrameType

EXIT_CODE = 128 + signal.SIGINT


def install_interrupt_handler() -> None:
    """From now on Ctrl-C during an import ends the process; elsewhere it raises KeyboardInterrupt, as before.

    Where the signal is ignored, as in a background job of a shell, it stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def restore_default_interrupt() -> None:
    """From now on, while Python ends, Ctrl-C kills the process, which a shell reports as exit code 130 too."""
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def exit_if_importing(number: int, frame: FrameType | None) -> None:
    """End the process if the code that the signal `number` has interrupted is part of an import.

    The exit code is 128 + `number`, as a shell reports it: 130 for Ctrl-C.

    An exception is not safe there: modules written in C swallow it or turn it into others. Raised at random places in
    the import of torch, KeyboardInterrupt was lost at some, and became "ImportError: cannot load module more than once
    per process" at others.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except (AttributeError, OSError, RuntimeError, ValueError):  # closed, or interrupted while it wrote
                    continue
            os._exit(128 + number)
        frame = frame.f_back


def _interrupt(number: int, frame: FrameType | None) -> None:
    exit_if_importing(number, frame)
    raise KeyboardInterrupt
