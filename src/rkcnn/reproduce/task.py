"""One run as a task on some machine of a Ray cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rkcnn.data.images import Images
from rkcnn.error import InputError
from rkcnn.record.run import Run, read_run
from rkcnn.reproduce.event import Event, fail
from rkcnn.reproduce.parcel import Parcel, pack_checkpoints, pack_results, unpack_checkpoints
from rkcnn.reproduce.reporter import Reporter
from rkcnn.reproduce.scratch import scratch_folder
from rkcnn.run.device import keep_freed_memory
from rkcnn.run.job import Job
from rkcnn.run.side_by_side import Execution, train_together
from rkcnn.run.signals import Stopped

Facts = dict[str, Any]  # numbers, text, arrays: what any version of rkcnn can be sent
REMEDY = "free some space there or name another --store"


@dataclass(frozen=True)
class Task:
    """A run, its place in the driver's list, and how it is carried out; no path of the driver's machine is in it."""

    place: int
    run: Run
    device: str
    engine: str
    keep_seconds: float
    threads: int
    store: Path | None

    def as_facts(self) -> Facts:
        return {**asdict(self), "run": self.run.as_dict(), "store": self.store and str(self.store)}


def read_task(facts: Facts) -> Task:
    """What `as_facts` wrote."""
    return Task(**{**facts, "run": read_run(facts["run"]), "store": facts["store"] and Path(facts["store"])})


def facts_of(images: Images) -> Facts:
    """Images as arrays, which all processes of a machine can read from the one copy in its object store."""
    facts = {field.name: getattr(images, field.name) for field in fields(images)}
    return {**facts, "pixels": np.ascontiguousarray(images.pixels.numpy()), "labels": images.labels.numpy()}


def images_of(facts: Facts) -> Images:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # true, and nobody writes to it
        tensors = {name: torch.from_numpy(facts[name]) for name in ("pixels", "labels")}
    return Images(**{**facts, **tensors})


class Sender(Reporter):
    """Tells the driver what happens, and sends each checkpoint away when it is made."""

    def __init__(self, task: Task, tell: Callable[[Event], None], send: Callable[[Parcel], None]) -> None:
        super().__init__({task.run: task.place}, tell)
        self._send = send

    def checkpoint_written(self, job: Job) -> None:
        self._send(pack_checkpoints(job.folder, 1))


def carry_out_far(
    facts: Facts, training: Facts, test: Facts, checkpoints: Parcel, mailbox: Any
) -> tuple[str, Parcel] | None:
    """Train one run from where it stood; its last event and its files, or None if this machine asked it to stop.

    It works in a folder of this machine that is gone with the machine; what matters is sent away as it is made.
    """
    import ray

    task = read_task(facts)
    os.environ["OMP_NUM_THREADS"] = str(task.threads)  # for a compiler's processes
    torch.set_num_threads(task.threads)
    keep_freed_memory()
    last: list[Event] = []
    sent: list[Any] = []

    def tell(event: Event) -> None:
        if event.what == "ends":
            last.append(event)  # it goes with the files
        else:
            mailbox.tell.remote(event.to_json())

    def send(parcel: Parcel) -> None:
        if task.store is not None:
            unpack_checkpoints(task.store / task.run.folder, parcel, REMEDY)
            return
        wait()  # one on its way at a time, so that a slow network has time for it
        sent.append(mailbox.keep.remote(task.place, parcel))

    def wait() -> None:
        while sent:
            ray.get(sent[-1])
            sent.pop()

    try:
        with scratch_folder() as scratch:
            folder = scratch / task.run.folder
            unpack_checkpoints(folder, checkpoints)
            if task.store is not None:
                unpack_checkpoints(folder, pack_checkpoints(task.store / task.run.folder))
            way = Execution(scratch, task.device, task.engine, keep_seconds=task.keep_seconds)
            with suppress(Stopped):
                train_together([task.run], images_of(training), images_of(test), way, Sender(task, tell, send))
            wait()
            return (last[0].to_json(), pack_results(folder)) if last else None
    except (InputError, RuntimeError, OSError) as error:
        return fail(task.place, error).to_json(), {}
