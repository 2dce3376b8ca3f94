"""The runs of a table on this machine: a process for each GPU, or for each group of CPU cores."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from math import ceil

import torch

from rkcnn.data.sources import Sources
from rkcnn.record.run import Run
from rkcnn.reproduce.event import Event
from rkcnn.reproduce.retries import PATIENCE, Retries, die
from rkcnn.reproduce.worker import DONE, Assignment, Group
from rkcnn.reproduce.worker_process import Place, WorkerProcess
from rkcnn.run.device import pick_device
from rkcnn.run.side_by_side import MOST_AT_ONCE, Execution

BUSY = 2.0  # seconds before a run that another process has is asked for again
SILENCE = 600.0  # seconds without news of a process, until it is worth a word


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


def reproduce_here(runs: Sequence[Run], way: Execution, sources: Sources) -> Generator[Event, None, None]:
    """Train the runs and tell what happens to each, until every one ended or failed.

    Closed early, as by Ctrl-C, it asks every worker to keep what it has. A worker that dies is replaced and its runs
    go on from their checkpoints.
    """
    places = places_for(way.device, len(runs))
    size = min(MOST_AT_ONCE, ceil(len(runs) / len(places))) if places[0].device != "cpu" else 1
    numbered = tuple(enumerate(runs))
    waiting: deque[Group] = deque(numbered[i : i + size] for i in range(0, len(numbered), size))
    shares: dict[int, float] = dict.fromkeys(range(len(runs)), 0.0)  # of those that neither ended nor failed
    deaths = Retries()
    told: set[int] = set()  # that it is busy
    news: queue.Queue[tuple[WorkerProcess, Event | None]] = queue.Queue()
    hands: list[WorkerProcess] = []

    def employ(hand: WorkerProcess) -> None:
        if not waiting:
            hand.give(None)
            return
        hand.give(Assignment(waiting.popleft(), replace(way, device=hand.place.device), sources, BUSY))

    def going(hand: WorkerProcess) -> Group:
        return tuple(one for one in hand.group if one[0] in shares and one not in hand.busy)

    def look_for_silence() -> Iterator[Event]:
        for hand in hands:
            if going(hand) and time.monotonic() - hand.heard >= SILENCE:
                hand.heard = time.monotonic()
                number, _ = going(hand)[0]
                yield Event("silent", number, shares[number])

    def bury(hand: WorkerProcess) -> Iterator[Event]:
        hands.remove(hand)
        why = f"its process died with exit code {hand.process.returncode}"
        left = going(hand)
        if len(left) == 1:
            ((number, run),) = left
            event = deaths.judge(number, shares[number], why, way.out / run.folder)
            if event.what == "fails":
                left = ()
                del shares[number]
            yield event
        else:
            yield from (die(number, shares[number], why) for number, _ in left)
        # Halves: should one of them kill its process every time, it soon stands alone.
        middle = (len(left) + 1) // 2
        waiting.extend(group for group in (left[:middle], left[middle:], hand.busy) if group)
        if waiting:
            hands.append(WorkerProcess(hand.place, news))
            employ(hands[-1])

    try:
        for place in places[: len(waiting)]:
            hands.append(WorkerProcess(place, news))
            employ(hands[-1])
        while shares:
            end = min((hand.heard for hand in hands if going(hand)), default=time.monotonic()) + SILENCE
            try:
                hand, event = news.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                yield from look_for_silence()
                continue
            if event is None:
                yield from bury(hand)
            elif event == DONE:
                if hand.busy:  # later they may be done, or free
                    waiting.append(hand.busy)
                employ(hand)
            elif event.what == "busy":
                hand.busy += ((event.run, runs[event.run]),)
                if event.run not in told:
                    told.add(event.run)
                    yield event
            elif event.run in shares:
                hand.heard = time.monotonic()
                if event.what in ("ends", "fails"):
                    del shares[event.run]
                else:
                    shares[event.run] = event.share
                yield event
    finally:
        _dismiss(hands)


def _dismiss(hands: list[WorkerProcess]) -> None:
    """Ask all to stop, wait for what they keep, and end those that take too long."""
    for hand in hands:
        if hand.group:
            hand.process.send_signal(signal.SIGTERM)
        hand.give(None)  # should it just have ended its runs, the signal came to nothing
    try:
        for hand in hands:
            hand.process.wait(PATIENCE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt, SystemExit):  # or asked a second time: at once
        for hand in hands:
            hand.process.kill()
    for hand in hands:
        hand.listener.join(PATIENCE)
