"""The runs of a table on this machine: a process for each GPU, or for each group of CPU cores."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil

import torch

from rkcnn.data.sources import Sources
from rkcnn.record.run import Run
from rkcnn.reproduce.event import Event, read_event
from rkcnn.reproduce.worker import DONE, Order
from rkcnn.run.place import pick_device
from rkcnn.run.together import MOST, Way

DEATHS = 3  # of its process, until a run is given up
SILENCE = 600.0  # seconds without news of anyone, until it is worth a word
PATIENCE = 120.0  # seconds for a process that was asked to stop to keep what it has

Group = tuple[tuple[int, Run], ...]


@dataclass(frozen=True)
class Place:
    """A device and the CPU threads that go with it."""

    device: str
    threads: int


@dataclass(eq=False)
class Hand:
    """A worker process, what it is at, and a thread that listens to it."""

    place: Place
    news: queue.Queue[tuple[Hand, Event | None]]
    group: Group = ()
    process: subprocess.Popen[str] = field(init=False)
    listener: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rkcnn.reproduce.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(self.place.threads)},
            start_new_session=True,  # Ctrl-C is the driver's, which asks them one by one
        )
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def give(self, order: Order | None) -> None:
        """An order, or none: then it leaves."""
        self.group = order.runs if order else ()
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


def places_for(device: str, count: int) -> list[Place]:
    """Every GPU, or as many groups of cores as there are runs: small networks train fastest one a core."""
    cores = len(os.sched_getaffinity(0))
    chosen = pick_device(device)
    if chosen.type == "cuda":
        gpus = torch.cuda.device_count() if chosen.index is None else 1
        names = [f"cuda:{i}" for i in range(gpus)] if chosen.index is None else [str(chosen)]
        return [Place(name, max(1, cores // gpus)) for name in names[: max(1, count)]]
    workers = max(1, min(count, cores))
    return [Place("cpu", cores // workers)] * workers


def reproduce_here(runs: Sequence[Run], way: Way, sources: Sources) -> Generator[Event, None, None]:
    """Train the runs and tell what happens to each, until every one ended or failed.

    Closed early, as by Ctrl-C, it asks every worker to keep what it has. A worker that dies is replaced and its runs
    go on from their checkpoints.
    """
    places = places_for(way.device, len(runs))
    size = min(MOST, ceil(len(runs) / len(places))) if places[0].device != "cpu" else 1
    numbered = tuple(enumerate(runs))
    waiting: deque[Group] = deque(numbered[i : i + size] for i in range(0, len(numbered), size))
    open_: set[int] = set(range(len(runs)))
    deaths: Counter[int] = Counter()
    news: queue.Queue[tuple[Hand, Event | None]] = queue.Queue()
    hands: list[Hand] = []

    def employ(hand: Hand) -> None:
        if not waiting:
            hand.give(None)
            return
        hand.give(Order(waiting.popleft(), replace(way, device=hand.place.device), sources))

    try:
        for place in places[: len(waiting)]:
            hands.append(Hand(place, news))
            employ(hands[-1])
        while open_:
            try:
                hand, event = news.get(timeout=SILENCE)
            except queue.Empty:
                yield from (Event("silent", hand.group[0][0]) for hand in hands if hand.group)
                continue
            if event == DONE:
                employ(hand)
            elif event is None:  # it died
                hands.remove(hand)
                left = tuple((number, run) for number, run in hand.group if number in open_)
                if len(left) == 1:
                    ((number, _),) = left
                    deaths[number] += 1
                    if deaths[number] == DEATHS:
                        open_.discard(number)
                        why = f"its process died {DEATHS} times, last with exit code {hand.process.returncode}"
                        yield Event("fails", number, text=why)
                        left = ()
                # Halves: should one of them kill its process every time, it soon stands alone.
                middle = (len(left) + 1) // 2
                waiting.extend(half for half in (left[:middle], left[middle:]) if half)
                if waiting:
                    hands.append(Hand(hand.place, news))
                    employ(hands[-1])
            elif event.what == "busy":  # another process has it: later it may be done, or free
                waiting.append(((event.run, runs[event.run]),))
            else:
                if event.what in ("ends", "fails"):
                    open_.discard(event.run)
                yield event
    finally:
        _dismiss(hands)


def _dismiss(hands: list[Hand]) -> None:
    """Ask all to stop, wait for what they keep, and end those that take too long."""
    for hand in hands:
        if hand.group:
            hand.process.send_signal(signal.SIGTERM)
        hand.give(None)  # should it just have ended its runs, the signal came to nothing
    try:
        for hand in hands:
            hand.process.wait(PATIENCE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):  # or asked a second time: at once
        for hand in hands:
            hand.process.kill()
    for hand in hands:
        hand.listener.join(PATIENCE)
