"""A worker process, which trains the runs that it is assigned: python -m rkcnn.reproduce.worker

It reads assignments as lines of JSON from standard input and writes events as lines of JSON to standard output. An
empty line tells it to leave when its assignment is done. When standard input closes, because the driver asks it to stop
or is dead, it keeps a checkpoint of every run and leaves.

`WorkerProcess` is that process as its driver sees it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.data.options import Sources
from rkcnn.disk import LOCK_HOLDER, FolderLocked
from rkcnn.error import InputError
from rkcnn.record.run import Run, read_run
from rkcnn.reproduce.events import Event, Reporter, failure, read_event
from rkcnn.run.device import keep_freed_memory
from rkcnn.run.side_by_side import Execution, Stopped, train_side_by_side

IDLE = Event("idle", -1)

Group = tuple[tuple[int, Run], ...]  # runs of one data set, each with its index in the driver's list


@dataclass(frozen=True)
class Assignment:
    """Runs for a worker process, and how to carry them out."""

    runs: Group
    execution: Execution
    sources: Sources
    busy_pause: float  # seconds to wait in the end if another process is training some of the runs

    def to_json(self) -> str:
        return json.dumps(
            {
                "runs": [(index, run.as_dict()) for index, run in self.runs],
                "execution": asdict(self.execution),
                "sources": asdict(self.sources),
                "busy_pause": self.busy_pause,
            },
            default=str,
        )


def read_assignment(line: str) -> Assignment:
    """Return the assignment that `Assignment.to_json` wrote."""
    values = json.loads(line)
    execution, sources = values["execution"], values["sources"]
    execution["out"] = Path(execution["out"])
    sources["data_dir"] = sources["data_dir"] and Path(sources["data_dir"])
    runs = tuple((index, read_run(run)) for index, run in values["runs"])
    return Assignment(runs, Execution(**execution), Sources(**sources), values["busy_pause"])


def carry_out(
    assignment: Assignment,
    load_images: Callable[[str, Sources], tuple[Images, Images]],
    report: Callable[[Event], None],
) -> None:
    """Train the runs of an assignment together; if that fails, one by one, so that one run can't fail the others.

    A run that another process is training is left out and reported as busy. Each run is reported to end only once.
    """
    execution = assignment.execution
    settled: set[int] = set()  # indices of runs that have ended or are busy

    def report_once(event: Event) -> None:
        if event.index in settled:  # a run that diverged is still among the jobs that advance
            return
        if event.kind in ("ends", "busy"):
            settled.add(event.index)
        report(event)

    groups, any_busy = [assignment.runs], False
    while groups:
        group = tuple((index, run) for index, run in groups.pop() if index not in settled)
        if not group:
            continue
        indices = {run: index for index, run in group}
        try:
            training, test = load_images(group[0][1].data, assignment.sources)
            train_side_by_side(list(indices), training, test, execution, Reporter(indices, report_once))
        except FolderLocked as lock:
            busy = next(index for index, run in group if execution.out / run.folder == lock.folder)
            report_once(Event("busy", busy, message=f"{lock.holder} is training it"))
            groups.append(group)
            any_busy = True
        except (InputError, RuntimeError, OSError) as error:
            if "CUDA error" in str(error):  # this process can't use the GPU any more, but another one can
                raise SystemExit(f"rkcnn: {failure(group[0][0], error).message}") from None
            if len(group) > 1:
                groups.extend((one,) for one in reversed(group))
            else:
                report(failure(group[0][0], error))
    if any_busy:
        time.sleep(assignment.busy_pause)  # before the driver assigns them again


def main() -> None:
    """Carry out assignments until the driver sends an empty line or closes standard input."""
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # anything else that is printed goes to standard error, so that it can't mix with the events
    keep_freed_memory()
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read_lines, args=(lines,), daemon=True).start()
    loaded: dict[tuple[str, Sources], tuple[Images, Images]] = {}

    def load_images(name: str, sources: Sources) -> tuple[Images, Images]:
        if (name, sources) not in loaded:
            loaded.clear()  # hold one data set at a time
            loaded[name, sources] = load_data_set(name, sources)
        return loaded[name, sources]

    def report(event: Event) -> None:
        with suppress(BrokenPipeError):  # the driver is dead; `_read_lines` notices, and checkpoints are kept first
            print(event.to_json(), file=events)

    try:
        while line := lines.get():
            carry_out(read_assignment(line), load_images, report)
            report(IDLE)
    except (Stopped, KeyboardInterrupt):
        sys.exit(0)


def _read_lines(lines: queue.Queue[str]) -> None:
    """Pass on the lines of standard input; when it closes, raise SIGTERM, which stops runs between two steps."""
    for line in sys.stdin:
        lines.put(line.strip())
        if not line.strip():
            return
    lines.put("")  # in case the signal comes when the last run has just ended
    signal.raise_signal(signal.SIGTERM)  # unlike os.kill, this calls the handler on Windows too


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
    begun: set[int] = field(default_factory=set)  # indices of those of them that train now
    had_neighbours: bool = False  # whether another process used its GPU during the assignment
    assigned_at: float = 0.0
    preparation: float = 0.0  # seconds from the assignment to the first steps
    first: tuple[float, float] | None = None  # time and fraction of the assignment that was done at the first steps
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
        self.runs, self.busy, self.begun, self.first = assignment.runs, (), set(), None
        self.last_heard = self.assigned_at = time.monotonic()
        self._send(assignment.to_json())

    def note_progress(self, fraction: float) -> float:
        """Note what fraction of its assignment is done after some more steps; return the seconds that are left.

        They are infinite until the steps have taken a tenth of the preparation, before which their speed is not known.
        """
        now = time.monotonic()
        if self.first is None:
            self.first, self.preparation = (now, fraction), now - self.assigned_at
        then, before = self.first
        known = fraction > before and now - then >= self.preparation / 10
        return (1 - fraction) * (now - then) / (fraction - before) if known else inf

    @property
    def is_preparing(self) -> bool:
        """Whether it has runs of which none has begun, so that it has nothing new to keep."""
        return bool(self.runs) and not self.begun and self.first is None

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


if __name__ == "__main__":
    main()
