"""Trains several runs of one data set, on a GPU side by side, to their ends or until Ctrl-C or SIGTERM stops them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from pathlib import Path
from types import FrameType

import torch

from rkcnn.data.images import Images
from rkcnn.disk import MissingFile, check_replaceable, lock_folder
from rkcnn.error import InputError
from rkcnn.fit.engine_names import check_engine
from rkcnn.fit.fit import Diverged, EpochDone, Paused, StepsDone, fit
from rkcnn.fit.ranks import Ranks, join
from rkcnn.record.result import Result, read_result
from rkcnn.record.run import Run
from rkcnn.run.device import forget_peak, pick_device, usual_torch
from rkcnn.run.job import Job, checksums, start_job
from rkcnn.run.observer import Observer
from rkcnn.run_folder import (
    ERRORS_BY_STATISTICS,
    REPLACED_RESULT,
    RESULT,
    find_checkpoint_files,
    find_incomplete_files,
    list_written_files,
)


class Stopped(Exception):
    """A run was asked to stop, by the signal that the message names; its checkpoint is written."""


@contextmanager
def stop_signals() -> Iterator[list[str]]:
    """Collect the names of signals that ask to stop, so that a run can stop between two steps.

    A second signal raises KeyboardInterrupt at once. Outside the main thread, where Python allows no handlers, the
    list stays empty. Ctrl-C is received also where it was ignored: in a task of Ray, that is how it is cancelled.
    """
    received: list[str] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(signal.Signals(number).name)

    in_main_thread = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGINT) if in_main_thread else ()
    before = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


CHECKPOINT_INTERVAL = 10.0
MOST_AT_ONCE = 10  # runs on a GPU: 10 small ones fill an H200 (docs/gpu.md)


@dataclass(frozen=True)
class Execution:
    """How runs are carried out. What they compute does not depend on it, up to rounding.

    A checkpoint is written every `checkpoint_interval`, at the end of a run, and when the run is asked to stop.
    """

    out: Path
    device: str = "auto"
    engine: str = "auto"
    again: bool = False  # repeat runs that have a result
    checkpoint_interval: float = CHECKPOINT_INTERVAL
    init_from: Path | None = None  # where the weights are that the recipe's `initial_weights` names

    def __post_init__(self) -> None:
        check_engine(self.engine)


def train_side_by_side(
    runs: Sequence[Run], training: Images, test: Images, execution: Execution, observer: Observer
) -> dict[Run, Result]:
    """Train runs of one data set and one precision, on a GPU as many at once as fit, and return their results.

    A run with a result is not trained again, unless `execution.again`; one with a checkpoint continues from it. Raises
    Stopped when a signal asks to stop, after every run that was prepared has a checkpoint.
    """
    results: dict[Run, Result] = {}
    with ExitStack() as stack:
        (precision,) = {run.recipe.precision for run in runs} or {"fp32"}
        stack.enter_context(usual_torch(precision))
        ranks, device = stack.enter_context(join(pick_device(execution.device)))
        if not ranks.writes:
            observer = Observer()
        waiting: list[Run] = []
        for run in runs:
            folder = execution.out / run.folder
            claim = partial(_claim_folder, run, folder, checksums(training, test), execution.again, stack)
            result = ranks.from_rank_0(claim)
            if result is None:
                waiting.append(run)
            else:
                results[run] = result
                observer.already_finished(folder, result)
        signals = stack.enter_context(stop_signals())
        while waiting:
            jobs: list[Job] = []
            forget_peak(device)
            # Starting a run takes part of all ranks, so it needs room on the GPU of each.
            while waiting and not ranks.largest(int(bool(signals) or not _has_room(device, jobs))):
                run = waiting.pop(0)
                folder, again = execution.out / run.folder, execution.again
                job, note = start_job(
                    run, folder, training, test, device, execution.engine, ranks, again, execution.init_from
                )
                _prepare(job, note, observer)
                jobs.append(job)
            if ranks.largest(int(bool(signals))):  # one came while these were prepared, or those before evaluated
                raise Stopped(signals[0] if signals else "another rank was stopped")
            for job in jobs:
                job.together = len(jobs)
            results |= _train(jobs, ranks, execution.checkpoint_interval, signals, observer)
    return results


def _claim_folder(run: Run, folder: Path, content: dict[str, str], again: bool, stack: ExitStack) -> Result | None:
    """Return the run's result unless `again` is set; without one, lock the folder until the stack is closed.

    `content` are the checksums that the result's images must have. A result that is repeated is set aside, so that
    the repetition can be broken off and continued like any run.
    """
    path = folder / RESULT
    if not again and (result := _find_result(run, path, content)) is not None:  # it can be on a read-only disk
        return result
    stack.enter_context(lock_folder(folder))
    for leftover in find_incomplete_files(folder):
        leftover.unlink(missing_ok=True)
    # another process may have finished it before the folder was locked
    if not again and (result := _find_result(run, path, content)) is not None:
        return result
    for written in list_written_files(folder):  # so that it is said before training, not after
        check_replaceable(written)
    if again and path.exists():
        for old in list(find_checkpoint_files(folder)):
            old.unlink()
        check_replaceable(folder / ERRORS_BY_STATISTICS)
        (folder / ERRORS_BY_STATISTICS).unlink(missing_ok=True)  # they are of the weights that are replaced
        path.replace(folder / REPLACED_RESULT)
    return None


def _find_result(run: Run, path: Path, content: dict[str, str]) -> Result | None:
    """Return the run's result, or None if there is none; raises InputError if it is of another run or other images."""
    try:
        result = read_result(path)
    except MissingFile:
        return None
    if result.run != run:
        raise InputError(f"{path} is of another run than {run.folder}; name another `out=...` or give `again=True`")
    if any(result.data.get(name, value) != value for name, value in content.items()):
        raise InputError(f"{path.parent} holds a result of other images; name another `out=...` or give `again=True`")
    return result


def _has_room(device: torch.device, jobs: list[Job]) -> bool:
    """Whether one more run can start beside those: on a GPU while it has memory, elsewhere one at a time.

    Other processes may use the GPU too, so what a run needs follows from what this one has reserved.
    """
    if not jobs:
        return True
    if device.type != "cuda" or len(jobs) >= MOST_AT_ONCE:
        return False
    torch.cuda.synchronize(device)
    free, _ = torch.cuda.mem_get_info(device)
    return free > 1.5 * torch.cuda.memory_reserved(device) / len(jobs)  # the half is for evaluation


def _prepare(job: Job, note: str, observer: Observer) -> None:
    """Compile what the engine compiles, and write the first files, so that a full disk is noticed before training."""
    if job.engine.compiled:
        observer.compiling(job)
    job.engine.begin()
    observer.run_started(job, "; ".join(filter(None, (job.engine.note, note))))
    job.begin_files()
    _save_checkpoint(job, observer)


def _save_checkpoint(job: Job, observer: Observer) -> None:
    if job.save_checkpoint():
        observer.checkpoint_written(job)


class _AfterStep(IntEnum):
    """What to do after a step. If ranks want different things, the largest value applies to all of them."""

    STEP = 0
    CHECKPOINT = 1
    STOP = 2


def _train(
    jobs: list[Job], ranks: Ranks, checkpoint_interval: float, signals: list[str], observer: Observer
) -> dict[Run, Result]:
    """Train jobs side by side to their ends and return their results; raise Stopped when there is a signal."""
    results: dict[Run, Result] = {}
    agreed = _AfterStep.STEP

    def end(job: Job, status: str) -> None:
        results[job.run] = job.write_result(status)
        observer.run_ended(job, results[job.run])

    for event in fit([job.engine for job in jobs]):
        match event:
            case StepsDone():
                observer.steps_done(jobs)
                due = any(job.checkpoint_is_due(checkpoint_interval) for job in jobs if job.run not in results)
                wanted = _AfterStep.STOP if signals else _AfterStep.CHECKPOINT if due else _AfterStep.STEP
                agreed = _AfterStep(ranks.largest(wanted))
                event.pause = agreed is not _AfterStep.STEP
            case EpochDone(run, epoch):
                job = jobs[run]
                observer.epoch_done(job, job.evaluate(epoch))
                if job.trainer.finished:
                    _save_checkpoint(job, observer)
                    end(job, "finished")
            case Diverged(run, reason):
                end(jobs[run], f"diverged: {reason}")
            case Paused():
                for job in jobs:
                    if job.run not in results:
                        _save_checkpoint(job, observer)
                if agreed is _AfterStep.STOP:
                    raise Stopped(signals[0] if signals else "another rank was stopped")
    for job in jobs:
        if job.run not in results:  # its checkpoint was at the end of training; only the result had not been written
            end(job, "finished")
    return results
