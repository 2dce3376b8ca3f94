"""A worker process, which trains the runs that it is assigned: python -m rkcnn.reproduce.worker

It reads assignments as lines of JSON from standard input and writes events as lines of JSON to standard output. An
empty line tells it to leave when its assignment is done. When standard input closes, because the driver asks it to stop
or is dead, it keeps a checkpoint of every run and leaves.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.data.options import Sources
from rkcnn.disk import FolderLocked
from rkcnn.error import InputError
from rkcnn.record.run import Run, read_run
from rkcnn.reproduce.events import Event, Reporter, failure
from rkcnn.run.device import keep_freed_memory
from rkcnn.run.side_by_side import Execution, train_side_by_side
from rkcnn.run.signals import Stopped

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


if __name__ == "__main__":
    main()
