"""A process that trains the runs it is given: python -m rkcnn.reproduce.worker

Orders come as lines of JSON on standard input and events go as lines of JSON to standard output; an empty order ends
it. When standard input closes without one its driver is dead: then it keeps what it has and leaves.
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
from typing import Any

from rkcnn.data.images import Images
from rkcnn.data.load import load
from rkcnn.data.sources import Sources
from rkcnn.error import InputError
from rkcnn.record.lock import Locked
from rkcnn.record.run import Run, read_run
from rkcnn.reproduce.event import Event, fail
from rkcnn.reproduce.reporter import Reporter
from rkcnn.run.device import keep_freed_memory
from rkcnn.run.side_by_side import Execution, train_together
from rkcnn.run.signals import Stopped

DONE = Event("idle", -1)  # the order is carried out, as far as it can be

Group = tuple[tuple[int, Run], ...]  # each with its place in the driver's list


@dataclass(frozen=True)
class Assignment:
    """Runs of one data set, how to carry them out, and how long to pause where another process has some of them."""

    runs: Group
    way: Execution
    sources: Sources
    pause: float  # seconds

    def to_json(self) -> str:
        runs = [(place, run.as_dict()) for place, run in self.runs]
        facts = {"runs": runs, "way": asdict(self.way), "sources": asdict(self.sources), "pause": self.pause}
        return json.dumps(facts, default=str)


def read_order(line: str) -> Assignment:
    facts = json.loads(line)
    way, sources = facts["way"], facts["sources"]
    way["out"] = Path(way["out"])
    sources["data_dir"] = sources["data_dir"] and Path(sources["data_dir"])
    runs = tuple((place, read_run(run)) for place, run in facts["runs"])
    return Assignment(runs, Execution(**way), Sources(**sources), facts["pause"])


def carry_out(
    order: Assignment, sets: Callable[[str, Sources], tuple[Images, Images]], tell: Callable[[Event], None]
) -> None:
    """Train an order's runs together; should that fail, each by itself, so that one does not take others down.

    One that another process has is left out, and told as busy. None is told to end twice.
    """
    closed: set[int] = set()  # ended, or busy

    def note(event: Event) -> None:
        if event.run in closed:  # one that diverged stays among those that move
            return
        if event.what in ("ends", "busy"):
            closed.add(event.run)
        tell(event)

    groups, busy = [order.runs], False
    while groups:
        group = tuple((place, run) for place, run in groups.pop() if place not in closed)
        if not group:
            continue
        places = {run: place for place, run in group}
        try:
            training, test = sets(group[0][1].data, order.sources)
            train_together(list(places), training, test, order.way, Reporter(places, note))
        except Locked as lock:
            held = next(place for place, run in group if order.way.out / run.folder == lock.folder)
            note(Event("busy", held, text=f"{lock.holder} has it"))
            groups.append(group)
            busy = True
        except (InputError, RuntimeError, OSError) as error:
            if "CUDA error" in str(error):  # nothing works on that GPU any more but in another process
                raise SystemExit(f"rkcnn: {fail(group[0][0], error).text}") from None
            if len(group) > 1:
                groups.extend((one,) for one in reversed(group))
            else:
                tell(fail(group[0][0], error))
    if busy:
        time.sleep(order.pause)  # before the driver asks for them again


def main() -> None:
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else prints must not stand between the events
    keep_freed_memory()
    orders: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()
    held: dict[Any, tuple[Images, Images]] = {}

    def sets(name: str, sources: Sources) -> tuple[Images, Images]:
        if (name, sources) not in held:
            held.clear()  # one set at a time
            held[name, sources] = load(name, sources)
        return held[name, sources]

    def tell(event: Event) -> None:
        with suppress(BrokenPipeError):  # the driver is gone, which `_listen` hears: first what there is must be kept
            print(event.to_json(), file=lines)

    try:
        while line := orders.get():
            carry_out(read_order(line), sets, tell)
            tell(DONE)
    except (Stopped, KeyboardInterrupt):
        sys.exit(0)


def _listen(orders: queue.Queue[str]) -> None:
    for line in sys.stdin:
        orders.put(line.strip())
        if not line.strip():
            return
    orders.put("")  # should the signal come when a run is ending, there is no other order to wait for
    os.kill(os.getpid(), signal.SIGTERM)  # the driver is gone


if __name__ == "__main__":
    main()
