"""One run as a Ray task: trains it on some machine of the cluster and sends its checkpoints and results back."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rkcnn.data.images import Images
from rkcnn.disk import lock_folder
from rkcnn.error import InputError
from rkcnn.fit.checkpoint import REMEDY
from rkcnn.record.run import Run, read_run
from rkcnn.reproduce.events import Event, Reporter, failure
from rkcnn.reproduce.ray.cluster import UMASK
from rkcnn.reproduce.ray.transfer import Files, pack_checkpoints, pack_results, unpack_checkpoints
from rkcnn.run.device import keep_freed_memory
from rkcnn.run.job import Job
from rkcnn.run.side_by_side import Execution, Stopped, train_side_by_side
from rkcnn.run_folder import LOCK

Values = dict[str, Any]  # numbers, text and arrays: no class of ours that the other side would have to import
STORE_REMEDY = "free some space there or name another `store=...`"


@dataclass(frozen=True)
class Task:
    """A run and how it is carried out; holds no path of the driver's machine but the shared `store`."""

    index: int  # of the run in the driver's list
    run: Run
    device: str
    engine: str
    checkpoint_interval: float
    threads: int
    store: Path | None  # a folder for checkpoints that all machines see; None: they go to the driver

    def as_values(self) -> Values:
        return {**asdict(self), "run": self.run.as_dict(), "store": self.store and str(self.store)}


def read_task(values: Values) -> Task:
    """Return the task that `Task.as_values` wrote."""
    return Task(**{**values, "run": read_run(values["run"]), "store": values["store"] and Path(values["store"])})


def images_to_values(images: Images) -> Values:
    """Return images as arrays, which all processes of a machine read from one copy in Ray's object store."""
    values = {field.name: getattr(images, field.name) for field in fields(images)}
    return {**values, "pixels": np.ascontiguousarray(images.pixels.numpy()), "labels": images.labels.numpy()}


def images_from_values(values: Values) -> Images:
    """Return the images that `images_to_values` wrote, without a copy of their pixels."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # true, and nobody writes to it
        tensors = {name: torch.from_numpy(values[name]) for name in ("pixels", "labels")}
    return Images(**{**values, **tensors})


class Sender(Reporter):
    """Reports events like a Reporter, and passes the files of each new checkpoint to `send`."""

    def __init__(self, task: Task, report: Callable[[Event], None], send: Callable[[Files], None]) -> None:
        super().__init__({task.run: task.index}, report)
        self._send = send

    def checkpoint_written(self, job: Job) -> None:
        self._send(pack_checkpoints(job.folder, newest_only=True))


def carry_out_task(
    values: Values, training: Values, test: Values, checkpoints: Files, mailbox: Any
) -> tuple[str, Files] | None:
    """Train the run of a task from its checkpoints; return its last event and its files.

    Returns None if the machine asked the process to stop. The work happens in a temporary folder that is lost with the
    machine; checkpoints are sent away when they are made.
    """
    import ray

    task = read_task(values)
    os.environ["OMP_NUM_THREADS"] = str(task.threads)  # for the processes of a compiler
    torch.set_num_threads(task.threads)
    keep_freed_memory()
    if UMASK in os.environ:
        os.umask(int(os.environ[UMASK], 8))  # checkpoints in a shared folder are readable as the user wants them
    last: list[Event] = []
    sent: list[Any] = []

    def report(event: Event) -> None:
        if event.kind == "ends":
            last.append(event)  # it travels with the files
        else:
            mailbox.put_event.remote(event.to_json())

    def send(files: Files) -> None:
        if task.store is not None:
            unpack_checkpoints(task.store / task.run.folder, files, STORE_REMEDY)
            return
        wait_until_sent()  # one at a time, so that they can't pile up on a slow network
        sent.append(mailbox.put_checkpoint.remote(task.index, files))

    def wait_until_sent() -> None:
        while sent:
            ray.get(sent[-1])
            sent.pop()

    try:
        with scratch_folder() as scratch:
            folder = scratch / task.run.folder
            unpack_checkpoints(folder, checkpoints, REMEDY)
            if task.store is not None:
                unpack_checkpoints(folder, pack_checkpoints(task.store / task.run.folder), REMEDY)
            execution = Execution(scratch, task.device, task.engine, checkpoint_interval=task.checkpoint_interval)
            images = images_from_values(training), images_from_values(test)
            with suppress(Stopped):
                train_side_by_side([task.run], *images, execution, Sender(task, report, send))
            wait_until_sent()
            return (last[0].to_json(), pack_results(folder)) if last else None
    except (InputError, RuntimeError, OSError) as error:
        return failure(task.index, error).to_json(), {}


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder for this process and delete it afterwards; first delete those of killed processes."""
    _delete_abandoned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"rkcnn-{os.getpid()}-") as made, lock_folder(Path(made)):
        yield Path(made)


def _delete_abandoned(folder: Path) -> None:
    """Delete only scratch folders whose process is dead, that hold our lock file and that nobody has locked.

    The lock also protects folders of other containers, in which the process ids mean other processes.
    """
    for path in folder.glob("rkcnn-*-*"):
        process = path.name.split("-")[1]
        with suppress(OSError, InputError):
            ours = path.lstat().st_uid == os.getuid() and (path / LOCK).is_file()
            if ours and process.isdecimal() and not _is_alive(int(process)):
                with lock_folder(path):
                    shutil.rmtree(path)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # signal 0 only asks whether the process exists
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True
