"""Sends the runs of a table to a Ray cluster as tasks and writes what comes back."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from rkcnn.data.load import load_data_set
from rkcnn.data.options import Sources
from rkcnn.disk import FolderLocked, lock_folder
from rkcnn.error import InputError
from rkcnn.fit.checkpoint import REMEDY
from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.record.run_state import find_state
from rkcnn.reproduce.events import Event, Retries, failure, read_event
from rkcnn.reproduce.ray.cluster import join_cluster
from rkcnn.reproduce.ray.task import Task, carry_out_task, images_to_values
from rkcnn.reproduce.ray.transfer import Mailbox, pack_checkpoints, unpack_checkpoints, unpack_results
from rkcnn.run.side_by_side import Execution

TASK_CPUS = 1  # cores and threads of a task: small networks train fastest on one core
TASK_GPU = 0.2  # of a GPU for a task: processes take turns on it, so a few keep it busy and more only use memory
POLL_SECONDS = 0.2  # between two looks at the tasks and the mailbox
STOP_SECONDS = 120.0  # tasks that are asked to stop have so long to send their checkpoints


def reproduce_on_ray(
    runs: Sequence[Run], execution: Execution, sources: Sources, address: str | None, store: Path | None
) -> Generator[Event, None, None]:
    """Train the runs on the cluster at `address`, or on one started here for the purpose, and yield their events.

    Results are written to `execution.out`, and so are checkpoints unless `store`, a folder that all machines see, is
    given. A task whose process or machine dies is submitted again and continues from its last checkpoint. Closed
    early, for example by Ctrl-C, it asks every task to keep a checkpoint.
    """
    check_device(execution.device)
    with ExitStack() as locks, join_cluster(address) as ray:  # first the cluster: a wrong address writes nothing
        device = task_device(execution.device, ray.cluster_resources().get("GPU", 0.0))
        accepted: dict[int, Run] = {}
        for index, run in enumerate(runs):
            try:
                locks.enter_context(lock_folder(execution.out / run.folder))
                if store is not None and store.resolve() != execution.out.resolve():
                    locks.enter_context(lock_folder(store / run.folder, "name another `store=...`"))
                state = find_state(run, execution.out)
            except FolderLocked as lock:
                later = "when that process has ended, the same command continues this run"
                yield Event("fails", index, message=f"{lock.holder} is training it in {lock.folder}; {later}")
                continue
            except InputError as error:
                yield failure(index, error)
                continue
            if isinstance(state, Result):  # another driver has finished it meanwhile
                yield Event("ends", index, 1.0, state.error, state.status)
            else:
                accepted[index] = run
        if accepted:
            yield from Driver(ray, accepted, execution, store, device).run(sources)


def check_device(device: str) -> None:
    """Raise InputError unless `device` is one that Ray tasks can be given."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"`device={device}` given, but Ray chooses among GPUs; say cpu, cuda or auto")


def task_device(device: str, gpus: float) -> str:
    """Return the device for tasks of a cluster with so many GPUs: cpu where there are none.

    Otherwise it stays `device`: Ray shows each task one GPU.
    """
    if device == "cuda" and not gpus:
        raise InputError("`device=cuda` given, and the Ray cluster has no GPU; say cpu or auto")
    return device if gpus else "cpu"


class Driver:
    """Submits runs as tasks, writes what they send, and submits those again whose process died."""

    def __init__(self, ray: Any, runs: dict[int, Run], execution: Execution, store: Path | None, device: str) -> None:
        self._ray, self._runs, self._execution, self._device = ray, runs, execution, device
        self._store = store and store.resolve()
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        this_node = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = (
            ray.remote(Mailbox)
            .options(num_cpus=0, scheduling_strategy=this_node, max_restarts=-1, max_task_retries=-1)
            .remote()
        )
        gpus = TASK_GPU if device != "cpu" else 0
        # max_retries=0: Ray's own retries would start from the checkpoint that the task was first given.
        self._function = ray.remote(carry_out_task).options(num_cpus=TASK_CPUS, num_gpus=gpus, max_retries=0)
        self._images: dict[str, tuple[Any, Any]] = {}  # training and test images of each data set, as Ray objects
        self._tasks: dict[Any, int] = {}  # the index of its run, of each task that has not ended
        self._fractions: dict[int, float] = {}
        self._retries = Retries()

    def run(self, sources: Sources) -> Generator[Event, None, None]:
        """Train the runs and yield their events, until each has ended or failed."""
        for data in dict.fromkeys(run.data for run in self._runs.values()):
            # Through the object store: no machine needs the files, and the processes of a machine share one copy.
            training, test = (self._ray.put(images_to_values(images)) for images in load_data_set(data, sources))
            self._images[data] = training, test
        try:
            for index in self._runs:
                self._submit(index)
            while self._tasks:
                ended = self._wait()
                yield from self._read_mailbox(ended)
                for task in ended:
                    index = self._tasks.pop(task)
                    event = self._collect(task, index)
                    if event.kind == "crashes":
                        self._submit(index)
                    yield event
        finally:
            self._stop()

    def _submit(self, index: int) -> None:
        run, execution = self._runs[index], self._execution
        task = Task(index, run, self._device, execution.engine, execution.checkpoint_interval, TASK_CPUS, self._store)
        checkpoints = pack_checkpoints(execution.out / run.folder)
        reference = self._function.remote(task.as_values(), *self._images[run.data], checkpoints, self._mailbox)
        self._tasks[reference] = index

    def _wait(self) -> list[Any]:
        """Pause, then return the tasks that have ended.

        The pause is Python's, because Ray's own turns SIGTERM into KeyboardInterrupt.
        """
        time.sleep(POLL_SECONDS)
        ended, _ = self._ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=0)
        return ended

    def _read_mailbox(self, ended: Sequence[Any]) -> Generator[Event, None, None]:
        """Write the checkpoints that have arrived, and yield the events.

        A run whose checkpoint can't be written fails, and its task is cancelled unless it is among those that `ended`.
        """
        events, checkpoints = self._ray.get(self._mailbox.fetch.remote())
        failures = []
        for index, files in checkpoints.items():  # write all before the first yield: they can be fetched only once
            try:
                unpack_checkpoints(self._execution.out / self._runs[index].folder, files, REMEDY)
            except InputError as error:
                failures.append(failure(index, error))
        for event in failures:
            for task in [task for task, index in self._tasks.items() if index == event.index and task not in ended]:
                del self._tasks[task]
                self._ray.cancel(task, recursive=False)
                yield event
        for event in map(read_event, events):
            if event.index in self._tasks.values():  # else its task has ended meanwhile
                self._fractions[event.index] = event.fraction
                yield event

    def _collect(self, task: Any, index: int) -> Event:
        """Write the files of a task that has ended and return its last event; or the event that it crashed."""
        errors, run = self._ray.exceptions, self._runs[index]
        try:
            answer = self._ray.get(task)
        except errors.RayTaskError as error:  # a mistake of ours, or another version of rkcnn on that machine
            return Event("fails", index, message=str(error).strip().splitlines()[-1])
        except errors.RayError as error:
            answer, why = None, f"its process died ({type(error).__name__}, {str(error).strip().partition(chr(10))[0]})"
        else:
            why = "its machine asked it to stop"
        if answer is None:
            folder = (self._store or self._execution.out) / run.folder
            return self._retries.after_crash(index, self._fractions.get(index, 0.0), why, folder)
        event, files = answer
        try:
            unpack_results(self._execution.out / run.folder, files, REMEDY)
        except InputError as error:
            return failure(index, error)
        return read_event(event)

    def _stop(self) -> None:
        """Ask all tasks to stop and write what they still send; a second Ctrl-C or SIGTERM ends the waiting."""
        for task in self._tasks:
            self._ray.cancel(task, recursive=False)  # not recursive: its calls to the mailbox must arrive
        end = time.monotonic() + STOP_SECONDS
        with suppress(KeyboardInterrupt, SystemExit):
            while self._tasks and time.monotonic() < end:
                ended = self._wait()
                for _ in self._read_mailbox(ended):
                    pass
                for task in ended:
                    self._collect(task, self._tasks.pop(task))
