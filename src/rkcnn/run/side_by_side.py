"""Runs side by side, from where they stand to their results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from rkcnn.data.images import Images
from rkcnn.disk import locked
from rkcnn.error import InputError
from rkcnn.fit.fit import Diverged, Stopped, fit
from rkcnn.fit.ranks import Ranks, join
from rkcnn.record.result import Result, read_result
from rkcnn.record.run import Run
from rkcnn.run.conclude import conclude
from rkcnn.run.device import pick_device
from rkcnn.run.job import Job, checksums, start_job
from rkcnn.run.observer import Observer
from rkcnn.run.signals import stop_signals
from rkcnn.run_folder import REPLACED_RESULT, RESULT, find_checkpoint_files

KEEP_SECONDS = 10.0
MOST = 10  # runs at once on a GPU: 10 small ones fill an H200, and 20 are no faster (docs/gpu.md)


@dataclass(frozen=True)
class Execution:
    """How runs are carried out; what they compute depends on none of it, up to rounding.

    A checkpoint is kept every `keep_seconds`, at the end of a run, and when it is asked to stop.
    """

    out: Path
    device: str = "auto"
    engine: str = "auto"
    again: bool = False
    keep_seconds: float = KEEP_SECONDS


def train_together(
    runs: Sequence[Run], training: Images, test: Images, way: Execution, observer: Observer
) -> dict[Run, Result]:
    """Train runs of one data set, on a GPU as many at once as it holds, and return what came of each.

    A run that is finished already is not run again, one that was broken off goes on where it stood.
    """
    results: dict[Run, Result] = {}
    with ExitStack() as stack:
        ranks, device = stack.enter_context(join(pick_device(way.device)))
        if not ranks.writes:
            observer = Observer()
        waiting: list[Run] = []
        for run in runs:
            folder = way.out / run.folder
            known = ranks.first(partial(_take, run, folder, checksums(training, test), way.again, stack))
            if known is not None:
                results[run] = known
                observer.found(folder, known)
            else:
                waiting.append(run)
        asked = stack.enter_context(stop_signals())
        while waiting:
            jobs: list[Job] = []
            while waiting and _has_room(device, jobs):
                run = waiting.pop(0)
                job, note = start_job(run, way.out / run.folder, training, test, device, way.engine, ranks)
                observer.begins(job, note)
                job.engine.begin()
                _keep(job, observer)  # before hours are spent: can this folder take a checkpoint?
                jobs.append(job)
            for job in jobs:
                job.together = len(jobs)
            results |= _go(jobs, observer, way.keep_seconds, asked)
    return results


def _take(run: Run, folder: Path, content: dict[str, str], again: bool, stack: ExitStack) -> Result | None:
    """Hold a run's folder; its result, if there is one that shall stand.

    A result that is to be repeated is set aside, so that the repetition, broken off, goes on like any run.
    """
    stack.enter_context(locked(folder))
    done = folder / RESULT
    if not done.exists():
        return None
    if again:
        for old in list(find_checkpoint_files(folder)):
            old.unlink()
        done.replace(folder / REPLACED_RESULT)
        return None
    result = read_result(done)
    if result.run != run:
        raise InputError(f"{done} is not of {run.folder}; name another --out or give --again")
    if any(result.data.get(name, value) != value for name, value in content.items()):
        raise InputError(f"{folder} holds a result of other images; name another --out or give --again")
    return result


def _has_room(device: torch.device, jobs: list[Job]) -> bool:
    """Whether one more run goes beside those: on a GPU while memory for it is left, elsewhere one at a time."""
    if not jobs:
        return True
    if device.type != "cuda" or len(jobs) >= MOST:
        return False
    torch.cuda.synchronize(device)
    free, total = torch.cuda.mem_get_info(device)
    return free > 1.5 * (total - free) / len(jobs)  # a run takes at most what the others took, and evaluation


def _keep(job: Job, observer: Observer) -> None:
    if job.keep():
        observer.kept(job)


def _go(jobs: list[Job], observer: Observer, keep_seconds: float, asked: list[str]) -> dict[Run, Result]:
    """Train jobs side by side to their ends, or until a signal asks to stop."""
    results: dict[Run, Result] = {}
    ranks = jobs[0].trainer.ranks if jobs else Ranks()

    def finish(job: Job, status: str) -> None:
        results[job.run] = conclude(job, status)
        observer.ends(job, results[job.run])

    wish = 0

    def observe() -> bool:
        nonlocal wish
        observer.steps(jobs)
        due = any(job.due(keep_seconds) for job in jobs if job.run not in results)
        wish = ranks.most(2 if asked else 1 if due else 0)  # all ranks keep, and stop, after the same step
        return wish > 0

    def rest() -> None:
        for job in jobs:
            if job.run not in results:
                _keep(job, observer)
        if wish == 2:
            raise Stopped(asked[0] if asked else "another rank was stopped")

    for i, outcome in fit([job.engine for job in jobs], observe, rest):
        job = jobs[i]
        if isinstance(outcome, Diverged):
            finish(job, f"diverged: {outcome}")
            continue
        observer.epoch(job, job.judge(outcome))
        if job.trainer.finished:
            _keep(job, observer)
            finish(job, "finished")
    for job in jobs:
        if job.run not in results:  # it was finished when it was resumed, but for its result
            finish(job, "finished")
    return results
