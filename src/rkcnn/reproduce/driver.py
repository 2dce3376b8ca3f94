"""Who gives runs to a Ray cluster, and writes what comes back."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rkcnn.data.load import load
from rkcnn.data.options import Sources
from rkcnn.error import InputError
from rkcnn.record.run import Run
from rkcnn.reproduce.event import Event, fail, read_event
from rkcnn.reproduce.mailbox import Mailbox
from rkcnn.reproduce.parcel import pack_checkpoints, unpack_checkpoints, unpack_results
from rkcnn.reproduce.retries import PATIENCE, Retries
from rkcnn.reproduce.task import Task, carry_out_far, facts_of
from rkcnn.run.side_by_side import Execution

CPUS = 1  # of a task, and its threads: small networks train fastest one a core
GPU = 0.2  # of a task: processes take turns on a GPU, so a few keep it busy and more only use memory
PAUSE = 0.2  # seconds between two looks into the mailbox


class Driver:
    """Gives runs out as tasks, writes what they send, and gives those out again whose process died."""

    def __init__(self, ray: Any, runs: dict[int, Run], way: Execution, store: Path | None, device: str) -> None:
        self._ray, self._runs, self._way, self._device = ray, runs, way, device
        self._store = store and store.resolve()
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = (
            ray.remote(Mailbox)
            .options(num_cpus=0, scheduling_strategy=here, max_restarts=-1, max_task_retries=-1)
            .remote()
        )
        gpus = GPU if device != "cpu" else 0
        # Ray's own retries would begin with the checkpoint that a task was first given
        self._task = ray.remote(carry_out_far).options(num_cpus=CPUS, num_gpus=gpus, max_retries=0)
        self._sets: dict[str, tuple[Any, Any]] = {}
        self._tasks: dict[Any, int] = {}
        self._shares: dict[int, float] = {}
        self._deaths = Retries()

    def drive(self, sources: Sources) -> Generator[Event, None, None]:
        for data in dict.fromkeys(run.data for run in self._runs.values()):
            # once into the object store, so that no machine needs files of its own, and its processes share one copy
            training, test = (self._ray.put(facts_of(images)) for images in load(data, sources))
            self._sets[data] = training, test
        try:
            for place in self._runs:
                self._give_out(place)
            while self._tasks:
                done = self._wait()
                yield from self._read_mail(done)
                for task in done:
                    place = self._tasks.pop(task)
                    event = self._take(task, place)
                    if event.what == "dies":
                        self._give_out(place)
                    yield event
        finally:
            self._dismiss()

    def _give_out(self, place: int) -> None:
        run, way = self._runs[place], self._way
        task = Task(place, run, self._device, way.engine, way.keep_seconds, CPUS, self._store)
        known = pack_checkpoints(way.out / run.folder)
        self._tasks[self._task.remote(task.as_facts(), *self._sets[run.data], known, self._mailbox)] = place

    def _wait(self) -> list[Any]:
        """The tasks that are done, after a pause of Python's: out of one of Ray's SIGTERM comes as Ctrl-C."""
        time.sleep(PAUSE)
        done, _ = self._ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=0)
        return done

    def _read_mail(self, done: Sequence[Any]) -> Generator[Event, None, None]:
        """What tasks said; a run whose checkpoint can't be written fails, unless its task is done all the same."""
        events, checkpoints = self._ray.get(self._mailbox.fetch.remote())
        failed = []
        for place, parcel in checkpoints.items():  # all of them before anyone is told: they can be fetched only once
            try:
                unpack_checkpoints(self._way.out / self._runs[place].folder, parcel)
            except InputError as error:
                failed.append(fail(place, error))
        for event in failed:
            for task in [task for task, place in self._tasks.items() if place == event.run and task not in done]:
                del self._tasks[task]
                self._ray.cancel(task, recursive=False)
                yield event
        for event in map(read_event, events):
            if event.run in self._tasks.values():  # not overtaken by the end of its task
                self._shares[event.run] = event.share
                yield event

    def _take(self, task: Any, place: int) -> Event:
        """A task's last event, with its files written; or that it died."""
        errors, run = self._ray.exceptions, self._runs[place]
        try:
            answer = self._ray.get(task)
        except errors.RayTaskError as error:  # a mistake of ours, or another rkcnn there
            return Event("fails", place, text=str(error).strip().splitlines()[-1])
        except errors.RayError as error:
            answer, why = None, f"its process died ({type(error).__name__}, {str(error).strip().partition(chr(10))[0]})"
        else:
            why = "its machine asked it to stop"
        if answer is None:
            folder = (self._store or self._way.out) / run.folder
            return self._deaths.judge(place, self._shares.get(place, 0.0), why, folder)
        event, files = answer
        try:
            unpack_results(self._way.out / run.folder, files)
        except InputError as error:
            return fail(place, error)
        return read_event(event)

    def _dismiss(self) -> None:
        """Ask all tasks to stop, and write what they still send; asked a second time, at once."""
        for task in self._tasks:
            self._ray.cancel(task, recursive=False)  # its calls to the mailbox are to arrive
        end = time.monotonic() + PATIENCE
        with suppress(KeyboardInterrupt, SystemExit):
            while self._tasks and time.monotonic() < end:
                done = self._wait()
                for _ in self._read_mail(done):
                    pass
                for task in done:
                    self._take(task, self._tasks.pop(task))
