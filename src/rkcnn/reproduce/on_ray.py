"""The runs of a table on a Ray cluster, each a task."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from rkcnn.data.load import load
from rkcnn.data.sources import Sources
from rkcnn.error import InputError
from rkcnn.record.lock import locked
from rkcnn.record.result import Result
from rkcnn.record.run import Run
from rkcnn.record.standing import standing
from rkcnn.reproduce.cluster import join_cluster
from rkcnn.reproduce.event import Event, read_event
from rkcnn.reproduce.mailbox import Mailbox
from rkcnn.reproduce.parcel import pack_checkpoints, unpack_checkpoints, unpack_results
from rkcnn.reproduce.task import Task, carry_out_far, facts_of
from rkcnn.run.together import Way

CPUS = 1  # of a task, and its threads: small networks train fastest one a core
GPU = 0.2  # of a task: processes take turns on a GPU, so a few keep it busy and more only use memory
DEATHS = 3  # of its process or machine, until a run is given up
PAUSE = 0.2  # seconds between two looks into the mailbox
PATIENCE = 120.0  # seconds for tasks that were asked to stop to send what they have


def reproduce_on_ray(
    runs: Sequence[Run], way: Way, sources: Sources, address: str | None, store: Path | None
) -> Generator[Event, None, None]:
    """Train the runs on the cluster at an address, or on one started here for the purpose, and tell what happens.

    Checkpoints come to `way.out`, or go to `store`, a folder that all machines see; results come to `way.out`. A task
    whose process or machine dies is given out again and goes on from its last checkpoint. Closed early, as by Ctrl-C,
    it asks every task to keep what it has.
    """
    with ExitStack() as stack:
        held: dict[int, Run] = {}
        for place, run in enumerate(runs):
            try:
                stack.enter_context(locked(way.out / run.folder))
                if store is not None and store.resolve() != way.out.resolve():
                    stack.enter_context(locked(store / run.folder))
                state = standing(run, way.out)
            except InputError as error:
                yield Event("fails", place, text=str(error))
                continue
            if isinstance(state, Result):  # another driver was faster
                yield Event("ends", place, 1.0, state.error, state.status)
            else:
                held[place] = run
        if held:
            yield from Driver(stack.enter_context(join_cluster(address)), held, way, store).drive(sources)


class Driver:
    """Gives runs out as tasks, writes what they send, and gives those out again whose process died."""

    def __init__(self, ray: Any, runs: dict[int, Run], way: Way, store: Path | None) -> None:
        self._ray, self._runs, self._way = ray, runs, way
        self._store = store and store.resolve()
        self._device = device_for(way.device, ray.cluster_resources().get("GPU", 0.0))
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = (
            ray.remote(Mailbox)
            .options(num_cpus=0, scheduling_strategy=here, max_restarts=-1, max_task_retries=-1)
            .remote()
        )
        gpus = GPU if self._device != "cpu" else 0
        # Ray's own retries would begin with the checkpoint that a task was first given
        self._task = ray.remote(carry_out_far).options(num_cpus=CPUS, num_gpus=gpus, max_retries=0)
        self._sets: dict[str, tuple[Any, Any]] = {}
        self._tasks: dict[Any, int] = {}

    def drive(self, sources: Sources) -> Generator[Event, None, None]:
        deaths: Counter[int] = Counter()
        for data in dict.fromkeys(run.data for run in self._runs.values()):
            # once into the object store, so that no machine needs files of its own, and its processes share one copy
            training, test = (self._ray.put(facts_of(images)) for images in load(data, sources))
            self._sets[data] = training, test
        try:
            for place in self._runs:
                self._give_out(place)
            while self._tasks:
                done = self._wait()
                yield from self._read_mail()
                for task in done:
                    place = self._tasks.pop(task)
                    event, why = self._take(task, place)
                    if event is not None:
                        yield event
                        continue
                    deaths[place] += 1
                    if deaths[place] < DEATHS:
                        self._give_out(place)
                    else:
                        yield Event("fails", place, text=f"its process died {DEATHS} times, last: {why}")
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

    def _read_mail(self) -> Generator[Event, None, None]:
        events, checkpoints = self._ray.get(self._mailbox.fetch.remote())
        for place, parcel in checkpoints.items():
            unpack_checkpoints(self._way.out / self._runs[place].folder, parcel)
        going = set(self._tasks.values())
        for line in events:
            event = read_event(line)
            if event.run in going:  # not overtaken by the end of its task
                yield event

    def _take(self, task: Any, place: int) -> tuple[Event | None, str]:
        """A task's last event, with its files written; or None and why there is none."""
        errors = self._ray.exceptions
        try:
            answer = self._ray.get(task)
        except errors.RayTaskError as error:  # a mistake of ours, or another rkcnn there
            return Event("fails", place, text=str(error).strip().splitlines()[-1]), ""
        except errors.RayError as error:
            return None, f"{type(error).__name__}, {str(error).strip().partition(chr(10))[0]}"
        if answer is None:
            return None, "its machine asked it to stop"
        event, files = answer
        unpack_results(self._way.out / self._runs[place].folder, files)
        return read_event(event), ""

    def _dismiss(self) -> None:
        """Ask all tasks to stop, and write what they still send; asked a second time, at once."""
        for task in self._tasks:
            self._ray.cancel(task, recursive=False)  # its calls to the mailbox are to arrive
        end = time.monotonic() + PATIENCE
        with suppress(KeyboardInterrupt):
            while self._tasks and time.monotonic() < end:
                done = self._wait()
                for _ in self._read_mail():
                    pass
                for task in done:
                    self._take(task, self._tasks.pop(task))


def device_for(device: str, gpus: float) -> str:
    """What a task is told: cpu, or to take the GPU that Ray lets it see."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"--device {device} given with --on ray, which chooses among GPUs; say cpu, cuda or auto")
    if device == "cuda" and not gpus:
        raise InputError("--device cuda given, and the Ray cluster has no GPU; say cpu or auto")
    return device if gpus else "cpu"
