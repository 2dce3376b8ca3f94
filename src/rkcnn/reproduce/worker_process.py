"""A worker process as its driver sees it: the slot it runs in, the runs assigned to it and the events it reports."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from rkcnn.disk import LOCK_HOLDER
from rkcnn.reproduce.events import Event, read_event
from rkcnn.reproduce.worker import Assignment, Group


@dataclass(frozen=True)
class Slot:
    """A device and the CPU threads that go with it: room for one worker process."""

    device: str
    threads: int


def count_cores() -> int:
    """Return how many CPU cores this process may use; where the system does not tell, how many there are."""
    if hasattr(os, "sched_getaffinity"):  # only on Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(eq=False)
class WorkerProcess:
    """A running worker process, its current assignment, and a thread that puts its events into `events`."""

    slot: Slot
    events: queue.Queue[tuple[WorkerProcess, Event | None]]  # None: the process has ended
    runs: Group = ()  # of the current assignment
    busy: Group = ()  # those of them that another process is training
    last_heard: float = 0.0  # time of the last event of a run that is not busy, or of the assignment
    process: subprocess.Popen[str] = field(init=False)
    listener: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rkcnn.reproduce.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(self.slot.threads), LOCK_HOLDER: str(os.getpid())},
            # Ctrl-C must reach the driver alone, which then asks its workers to stop: in a new session on Linux and
            # macOS, in a new process group on Windows.
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def assign(self, assignment: Assignment) -> None:
        """Send the process runs to train."""
        self.runs, self.busy, self.last_heard = assignment.runs, (), time.monotonic()
        self._send(assignment.to_json())

    def dismiss(self) -> None:
        """Let the process leave when it has done its assignment."""
        self.runs, self.busy = (), ()
        self._send("")

    def stop(self) -> None:
        """Ask the process to keep a checkpoint of every run now, and to leave."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def _send(self, line: str) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # it has just died, which `_listen` will report
            print(line, file=self.process.stdin, flush=True)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        try:
            with suppress(BrokenPipeError), self.process:  # in the end closes the pipes and waits for the process
                for line in self.process.stdout:
                    self.events.put((self, read_event(line)))
        except ValueError:  # half a line: the process died while it wrote
            self.process.kill()
        finally:
            self.events.put((self, None))
