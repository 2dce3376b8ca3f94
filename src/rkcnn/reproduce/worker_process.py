"""A worker process, as its driver sees it."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from rkcnn.disk import HOLDER
from rkcnn.reproduce.event import Event, read_event
from rkcnn.reproduce.worker import Assignment, Group


@dataclass(frozen=True)
class Place:
    """A device and the CPU threads that go with it."""

    device: str
    threads: int


@dataclass(eq=False)
class WorkerProcess:
    """A worker process, what it is at, and a thread that listens to it."""

    place: Place
    news: queue.Queue[tuple[WorkerProcess, Event | None]]  # None: it is gone
    group: Group = ()
    busy: Group = ()  # those of its group that another process has
    heard: float = 0.0  # when it last said anything of the others, or was given them
    process: subprocess.Popen[str] = field(init=False)
    listener: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rkcnn.reproduce.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(self.place.threads), HOLDER: str(os.getpid())},
            start_new_session=True,  # Ctrl-C is the driver's, which asks them one by one
        )
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def give(self, order: Assignment | None) -> None:
        """An order, or none: then it leaves."""
        self.group, self.busy, self.heard = order.runs if order else (), (), time.monotonic()
        assert self.process.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # it died just now: that is heard soon
            print(order.to_json() if order else "", file=self.process.stdin, flush=True)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        try:
            with suppress(BrokenPipeError), self.process:  # closes its pipes, where an order may be stuck, and waits
                for line in self.process.stdout:
                    self.news.put((self, read_event(line)))
        except ValueError:  # half a line: it died in the midst of it
            self.process.kill()
        finally:
            self.news.put((self, None))
