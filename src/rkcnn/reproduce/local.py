"""Trains the runs of a table on this machine: one worker process for each GPU, or for each group of CPU cores."""

from __future__ import annotations

import queue
import subprocess
import time
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from math import ceil

import torch

from rkcnn.data.options import Sources
from rkcnn.data.sets import find_set
from rkcnn.record.run import Run
from rkcnn.reproduce.estimate import count_cost
from rkcnn.reproduce.events import MOST_CRASHES, Event, Retries, crash
from rkcnn.reproduce.worker import IDLE, Assignment, Group, Slot, WorkerProcess, count_cores
from rkcnn.run.device import pick_device
from rkcnn.run.side_by_side import MOST_AT_ONCE, Execution

BUSY_PAUSE = 2.0  # seconds before a run that another process is training is tried again
SILENCE = 600.0  # seconds without an event of a worker after which that is reported
STOP_SECONDS = 120.0  # how long a worker that is asked to stop may take to write its checkpoints
LARGE = 1e11  # FLOPs of a step from which a few runs fill a GPU, so that networks need not train side by side


def slots_for(device: str, runs: int) -> list[Slot]:
    """Return a slot for each GPU, or one for each of `runs` on the CPU cores: small networks train fastest on one core.

    `device` is auto, cpu, cuda (all GPUs) or cuda:N. There are at most as many slots as runs, and at least one.
    """
    cores = count_cores()
    chosen = pick_device(device)
    if chosen.type == "cuda":
        gpus = torch.cuda.device_count() if chosen.index is None else 1
        names = [f"cuda:{i}" for i in range(gpus)] if chosen.index is None else [str(chosen)]
        return [Slot(name, max(1, cores // gpus)) for name in names[: max(1, runs)]]
    workers = max(1, min(runs, cores))
    return [Slot("cpu", cores // workers)] * workers


def group_runs(runs: Sequence[Run], slots: Sequence[Slot]) -> list[Group]:
    """Return the runs in the groups that workers train side by side: one at a time on CPUs.

    On a GPU there are at most MOST_AT_ONCE in a group. A large network shares its group with no other: its seeds fill
    the GPU, and other networks are compiled while it trains.
    """
    groups: list[Group] = []
    size = min(MOST_AT_ONCE, ceil(len(runs) / len(slots))) if on_gpu(slots[0]) else 1
    for index, run in enumerate(runs):
        last = groups[-1][-1][1] if groups else run
        apart = size > 1 and last.network != run.network and (_is_large(last) or _is_large(run))
        if not groups or len(groups[-1]) == size or apart:
            groups.append(())
        groups[-1] += ((index, run),)
    return groups


def on_gpu(slot: Slot) -> bool:
    return slot.device != "cpu"


def _is_large(run: Run) -> bool:
    return 3 * run.recipe.batch * count_cost(run.network, find_set(run.data)).flops >= LARGE


def reproduce_here(runs: Sequence[Run], execution: Execution, sources: Sources) -> Generator[Event, None, None]:
    """Train the runs and yield their events, until each has ended or failed.

    Closed early, for example by Ctrl-C, it asks every worker to keep a checkpoint of each run that has begun. A worker
    that dies is replaced, and its runs continue from their checkpoints.
    """
    scheduler = _Scheduler(runs, execution, sources)
    try:
        yield from scheduler.run()
    finally:
        scheduler.stop()


class _Scheduler:
    """Assigns runs to worker processes and follows what the workers report."""

    def __init__(self, runs: Sequence[Run], execution: Execution, sources: Sources) -> None:
        self._runs, self._execution, self._sources = runs, execution, sources
        self._slots = slots_for(execution.device, len(runs))
        self._waiting = deque(group_runs(runs, self._slots))
        self._fractions = dict.fromkeys(range(len(runs)), 0.0)  # done, of each run that has neither ended nor failed
        self._retries = Retries()
        self._reported_busy: set[int] = set()
        self._forgiven: Counter[int] = Counter()  # how often each run has failed beside another process on its GPU
        self._overlap = True  # whether a worker may prepare its runs while another one still trains on its GPU
        self._events: queue.Queue[tuple[WorkerProcess, Event | None]] = queue.Queue()
        self._workers: list[WorkerProcess] = []

    def run(self) -> Iterator[Event]:
        for slot in self._slots[: len(self._waiting)]:
            self._start_worker(slot)
        while self._fractions:
            heard = [worker.last_heard for worker in self._workers if self._training(worker)]
            silent_at = min(heard, default=time.monotonic()) + SILENCE
            try:
                worker, event = self._events.get(timeout=max(0.0, silent_at - time.monotonic()))
            except queue.Empty:
                yield from self._report_silence()
            else:
                yield from self._replace(worker) if event is None else self._handle(worker, event)

    def stop(self) -> None:
        """Ask all workers to stop, wait until they have, and kill those that take too long.

        One that still prepares its runs is killed at once: it might compile for a minute before it hears, and its runs'
        checkpoints, if they have any, are those that it would continue from.
        """
        while not self._events.empty():  # of events that were not handled yet, those that say that training has begun
            worker, event = self._events.get()
            if event is not None and event.kind == "begins":
                worker.begun.add(event.index)
        for worker in self._workers:
            if worker.is_preparing:
                worker.process.kill()
            worker.stop()
        try:
            for worker in self._workers:
                worker.process.wait(STOP_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt, SystemExit):  # or a second Ctrl-C: kill at once
            for worker in self._workers:
                worker.process.kill()
        for worker in self._workers:
            worker.listener.join(STOP_SECONDS)

    def _start_worker(self, slot: Slot) -> None:
        worker = WorkerProcess(slot, self._events)
        self._workers.append(worker)
        self._assign(worker)

    def _assign(self, worker: WorkerProcess) -> None:
        """Give a worker the next group of runs."""
        execution = replace(self._execution, device=worker.slot.device)
        neighbours = self._neighbours(worker)
        worker.had_neighbours = bool(neighbours)
        for neighbour in neighbours:
            neighbour.had_neighbours = True
        worker.assign(Assignment(self._waiting.popleft(), execution, self._sources, BUSY_PAUSE))

    def _neighbours(self, worker: WorkerProcess) -> list[WorkerProcess]:
        """Return the other workers whose processes use the same GPU, also those that are leaving."""
        return [each for each in self._workers if each is not worker and each.slot == worker.slot and on_gpu(each.slot)]

    def _has_successor(self, worker: WorkerProcess) -> bool:
        """Whether another worker has runs for the same GPU."""
        return any(neighbour.runs for neighbour in self._neighbours(worker))

    def _start_successor(self, worker: WorkerProcess) -> None:
        """Start a worker for the next group when this one's will end in less time than it took to prepare.

        Preparing is mostly compiling, for which a GPU need not wait. Nothing is prepared beside a run that trains
        alone, so that the time in its record is its own.
        """
        done = [self._fractions.get(index, 1.0) for index, _ in worker.runs]
        left = worker.note_progress(sum(done) / len(done))
        if not (self._overlap and self._waiting and on_gpu(worker.slot)) or self._has_successor(worker):
            return
        if left <= worker.preparation and min(len(worker.begun), len(self._waiting[0])) > 1:
            self._start_worker(worker.slot)

    def _training(self, worker: WorkerProcess) -> Group:
        """Return the runs of a worker that have neither ended nor failed and are not busy."""
        return tuple(one for one in worker.runs if one[0] in self._fractions and one not in worker.busy)

    def _handle(self, worker: WorkerProcess, event: Event) -> Iterator[Event]:
        """Note an event of a worker, and yield it if it is to be reported."""
        if event == IDLE:
            if worker.busy:  # by then they may have ended, or be free
                self._waiting.append(worker.busy)
            if self._waiting and not self._has_successor(worker):
                self._assign(worker)
            else:
                worker.dismiss()
        elif event.kind == "busy":
            worker.busy += ((event.index, self._runs[event.index]),)
            if event.index not in self._reported_busy:
                self._reported_busy.add(event.index)
                yield event
        elif event.index in self._fractions:
            worker.last_heard = time.monotonic()
            if event.kind == "begins":
                worker.begun.add(event.index)
            elif event.kind in ("ends", "fails"):
                worker.begun.discard(event.index)
            if event.kind == "fails" and self._forgives(worker, event.index):
                run = (event.index, self._runs[event.index])
                worker.runs = tuple(each for each in worker.runs if each != run)
                self._waiting.append((run,))
                return
            if event.kind in ("ends", "fails"):
                del self._fractions[event.index]
            else:
                self._fractions[event.index] = event.fraction
            if event.kind == "advances":
                self._start_successor(worker)
            yield event

    def _forgives(self, worker: WorkerProcess, index: int) -> bool:
        """Whether it doesn't count against a run that it failed: another process may have taken the GPU's memory.

        From then on no two share a GPU. One that is leaving may still have its memory; a few failures are forgiven.
        """
        if not worker.had_neighbours:
            return False
        self._overlap = False
        self._forgiven[index] += 1
        return self._forgiven[index] <= MOST_CRASHES

    def _report_silence(self) -> Iterator[Event]:
        for worker in self._workers:
            training = self._training(worker)
            if training and time.monotonic() - worker.last_heard >= SILENCE:
                worker.last_heard = time.monotonic()
                index, _ = training[0]
                yield Event("silent", index, self._fractions[index])

    def _replace(self, worker: WorkerProcess) -> Iterator[Event]:
        """Put the runs of a worker that died back into the queue, and start another worker if there is work."""
        self._workers.remove(worker)
        why = f"its process died with exit code {worker.process.returncode}"
        left = self._training(worker)
        forgiven = [self._forgives(worker, index) for index, _ in left]
        if left and all(forgiven):
            yield from (crash(index, self._fractions[index], why) for index, _ in left)
        elif len(left) == 1:
            ((index, run),) = left
            event = self._retries.after_crash(index, self._fractions[index], why, self._execution.out / run.folder)
            if event.kind == "fails":
                left = ()
                del self._fractions[index]
            yield event
        else:
            yield from (crash(index, self._fractions[index], why) for index, _ in left)
        # Halve the group, so that a run that always kills its process is soon alone, where its crashes are counted.
        middle = (len(left) + 1) // 2
        self._waiting.extend(group for group in (left[:middle], left[middle:], worker.busy) if group)
        if self._waiting and not self._has_successor(worker):
            self._start_worker(worker.slot)
