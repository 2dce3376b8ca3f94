"""The corridor: data -> model -> train -> evaluate -> record. The only file that knows them all."""

from __future__ import annotations

import platform
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import nn

from rkcnn.data.images import Images
from rkcnn.data.load import load
from rkcnn.data.own import Own
from rkcnn.data.progress import Progress
from rkcnn.data.sources import Sources
from rkcnn.error import InputError
from rkcnn.evaluate.predict import Predictor
from rkcnn.evaluate.weights import FILE, Facts
from rkcnn.model.create import create_model
from rkcnn.record.lock import locked
from rkcnn.record.result import Result, read_result
from rkcnn.record.run import Run
from rkcnn.record.shorter import find_shorter
from rkcnn.record.source import commit, source_hash
from rkcnn.train.checkpoint import keep, resume, tensors_of, write_whole
from rkcnn.train.engine import Engine, start_engine
from rkcnn.train.fit import Diverged, Epoch, Stopped, fit
from rkcnn.train.ranks import Ranks, join
from rkcnn.train.recipe import Recipe, recipe_of
from rkcnn.train.trainer import Trainer

KEEP_SECONDS = 60.0  # a checkpoint at least this often, beside the one after each epoch


class Observer:
    """What is told while runs go on; a command line shows it, and this one says nothing."""

    def found(self, folder: Path, result: Result) -> None: ...

    def begins(self, job: Job, note: str) -> None: ...

    def steps(self, jobs: Sequence[Job]) -> None: ...

    def epoch(self, job: Job, epoch: dict[str, Any]) -> None: ...

    def ends(self, job: Job, result: Result) -> None: ...


@dataclass
class Job:
    """One run on its way: its folder, its trainer, and what is known of it so far."""

    run: Run
    folder: Path
    train: Images
    predictor: Predictor
    engine: Engine
    history: list[dict[str, Any]] = field(default_factory=list)
    kept: float = field(default_factory=time.monotonic)

    @property
    def trainer(self) -> Trainer:
        return self.engine.trainer

    def keep(self) -> None:
        """A checkpoint, unless the loss of this epoch is no longer finite: the last good one shall stay."""
        self.engine.wait()
        if self.trainer.sound:
            facts = identity(self.run.as_dict(), self.train)
            self.trainer.ranks.first(lambda: keep(self.folder, self.trainer, facts, self.history))
        self.kept = time.monotonic()


def train(
    spec: str = "RKCNN-R-2@k=32",
    data: str = "mnist-mini",
    recipe: str | Recipe = "mini",
    seeds: Sequence[int] = (0,),
    *,
    device: str = "auto",
    engine: str = "auto",
    out: str | Path = "runs",
    validation: int = 0,
    again: bool = False,
    keep_seconds: float = KEEP_SECONDS,
    sources: Sources | None = None,
    own: Own | None = None,
    progress: Progress | None = None,
    observer: Observer | None = None,
) -> list[Result]:
    """Train a network, one run for each seed, and return what came of them.

    A run that is finished already is not run again, one that was broken off goes on where it stood, and one with
    more epochs goes on from a shorter one where the schedule allows. A checkpoint is kept after every epoch, and
    within one every `keep_seconds`. With a `validation` split the errors are those of the held-out images, and the
    test set is not looked at.
    """
    chosen = recipe_of(recipe) if isinstance(recipe, str) else recipe
    observer = observer or Observer()
    training, test = load(data, sources, own, progress)
    if validation:
        training, test = training.split(validation)
    named = f"{data}~validation-{validation}" if validation else data
    runs = [Run(named, check_fit(spec, training), chosen, seed) for seed in seeds]
    results: dict[int, Result] = {}
    with ExitStack() as stack:
        ranks, place = stack.enter_context(join(pick_device(device)))
        if not ranks.writes:
            observer = Observer()
        waiting = []
        for run in runs:
            folder = Path(out) / run.folder
            known = ranks.first(partial(_take, run, folder, training, again, stack))
            if known is not None:
                results[run.seed] = known
                observer.found(folder, known)
            else:
                waiting.append((run, folder))
        together = [waiting] if place.type == "cuda" else [[one] for one in waiting]
        asked = stack.enter_context(stop_signals())
        for group in together:
            jobs = [_start(run, folder, training, test, place, engine, ranks, again, observer) for run, folder in group]
            results |= _go(jobs, observer, keep_seconds, asked)
    return [results[run.seed] for run in runs]


def _take(run: Run, folder: Path, training: Images, again: bool, stack: ExitStack) -> Result | None:
    """Hold a run's folder; its result, if there is one that shall stand."""
    stack.enter_context(locked(folder))
    done = folder / "result.json"
    if again or not done.exists():
        return None
    result = read_result(done)
    if (result.run, result.data.get("train_sha256")) != (run.as_dict(), training.pixels_sha256):
        raise InputError(f"{folder} holds a result of other images; name another --out or give --again")
    return result


def train_one(
    spec: str = "RKCNN-R-2@k=32",
    data: str = "mnist-mini",
    recipe: str | Recipe = "mini",
    seed: int = 0,
    *,
    device: str = "auto",
    engine: str = "auto",
    out: str | Path = "runs",
    validation: int = 0,
    again: bool = False,
    observer: Observer | None = None,
) -> Result:
    """Train a network with one seed and return what came of it; this is `rkcnn.train`."""
    (result,) = train(
        spec,
        data,
        recipe,
        (seed,),
        device=device,
        engine=engine,
        out=out,
        validation=validation,
        again=again,
        observer=observer,
    )
    return result


def pick_device(name: str) -> torch.device:
    """A device by name; auto takes a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        have = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise InputError(f"no device {name!r} here; there is {', '.join(have)}, or say auto") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"can't train on {name!r}; devices are cpu, cuda and cuda:N")
    return device


def check_fit(spec: str, images: Images) -> str:
    """The network's full name, if it can take these images."""
    _, channels, height, width = images.pixels.shape
    with torch.device("meta"):
        network = create_model(spec, len(images.classes), channels)
        try:
            network(torch.empty(2, channels, height, width, device="meta"))
        except InputError as error:
            raise InputError(f"{images.name} doesn't fit the network: {error}") from None
    return network.name


def identity(run: dict[str, Any], training: Images) -> dict[str, Any]:
    """What a checkpoint must be of: the run, and the very pixels, which own images don't say by their name."""
    return {**run, "train_sha256": training.pixels_sha256}


def build(run: Run, images: Images) -> nn.Module:
    """The network of a run with its first weights: a function of the run alone, whatever device it goes to."""
    torch.manual_seed(run.seed)
    recipe = run.recipe
    return create_model(run.spec, len(images.classes), images.pixels.shape[1], recipe.dropout, recipe.init)


def _start(
    run: Run,
    folder: Path,
    training: Images,
    test: Images,
    device: torch.device,
    engine: str,
    ranks: Ranks,
    again: bool,
    observer: Observer,
) -> Job:
    set_precision(run.recipe.precision)
    trainer = Trainer(build(run, training), training, run.recipe, run.seed, device, ranks)

    def go_on() -> tuple[list[dict[str, Any]], str, int, int]:
        if again:
            for old in (*folder.glob("checkpoint-*"), folder / "result.json"):
                old.unlink(missing_ok=True)
        history, note = resume(folder, trainer, identity(run.as_dict(), training))
        if not history and not again and (shorter := find_shorter(run, folder)) is not None:
            history, _ = resume(shorter.folder, trainer, identity(shorter.run, training))
            note = f"goes on from the {len(history)} epochs in {shorter.folder}"
        return history, note, trainer.epoch, trainer.step

    history, note, trainer.epoch, trainer.step = ranks.first(go_on)
    ranks.follow(tensors_of(trainer).values())
    chosen, why = start_engine(engine, trainer)
    job = Job(run, folder, training, Predictor(test, device, run.recipe.precision), chosen, history)
    observer.begins(job, "; ".join(filter(None, (why, note))))
    job.keep()  # before hours are spent: can this folder take a checkpoint?
    return job


def _go(jobs: list[Job], observer: Observer, keep_seconds: float, asked: list[str]) -> dict[int, Result]:
    """Train jobs side by side to their ends, or until a signal asks to stop."""
    results: dict[int, Result] = {}
    ranks = jobs[0].trainer.ranks if jobs else Ranks()

    def between() -> None:
        observer.steps(jobs)
        now = time.monotonic()
        due = any(now - job.kept > keep_seconds and not job.trainer.finished for job in jobs)
        wish = ranks.most(2 if asked else 1 if due else 0)  # all ranks keep, and stop, after the same step
        if wish:
            for job in jobs:
                job.keep()
        if wish == 2:
            raise Stopped(asked[0] if asked else "another rank was stopped")

    for i, outcome in fit([job.engine for job in jobs], between):
        job = jobs[i]
        if isinstance(outcome, Diverged):
            results[job.run.seed] = _finish(job, f"diverged: {outcome}", observer)
            continue
        _judge(job, outcome)
        observer.epoch(job, job.history[-1])
        job.keep()
        if job.trainer.finished:
            results[job.run.seed] = _finish(job, "finished", observer)
    for job in jobs:
        if job.run.seed not in results:  # it was finished when it was resumed, but for its result
            results[job.run.seed] = _finish(job, "finished", observer)
    return results


def _judge(job: Job, epoch: Epoch) -> None:
    """Ask the network about the test images; the averaged weights answer where the recipe has them."""

    def ask() -> float:
        with averaged(job.trainer):
            return job.predictor.error(job.predictor.predictions(job.trainer.network))

    job.history.append({**asdict(epoch), "test_error": job.trainer.ranks.first(ask)})


@contextmanager
def averaged(trainer: Trainer) -> Iterator[None]:
    """The network with the running average of its weights, if the recipe keeps one."""
    if not trainer.averaged:
        yield
        return
    parameters = [p.data for p in trainer.network.parameters()]
    kept = [p.clone() for p in parameters]
    torch._foreach_copy_(parameters, trainer.averaged)
    try:
        yield
    finally:
        torch._foreach_copy_(parameters, kept)


def _finish(job: Job, status: str, observer: Observer) -> Result:
    result = job.trainer.ranks.first(lambda: _record(job, status))
    observer.ends(job, result)
    return result


def _record(job: Job, status: str) -> Result:
    """Write the weights, the last predictions and, last of all, the result."""
    trainer, images = job.trainer, job.train
    errors = [epoch["test_error"] for epoch in job.history]
    seconds = sum(epoch["seconds"] for epoch in job.history)
    last = job.history[-1] if job.history else {}
    result = Result(
        run=job.run.as_dict(),
        status=status,
        error=errors[-1] if errors and status == "finished" else None,
        error_best=min(errors, default=None),
        epochs=job.history,
        seconds=seconds,
        images_per_second=trainer.steps * trainer.recipe.batch * len(errors) / seconds if seconds else 0.0,
        peak_bytes=peak_bytes(trainer.device),
        params=sum(p.numel() for p in trainer.network.parameters()),
        evaluations=last.get("evaluations"),
        unconverged=last.get("unconverged"),
        engine=job.engine.kind,
        data={
            "verified": images.verified,
            "train_sha256": images.pixels_sha256,
            "test_sha256": job.predictor.images.pixels_sha256,
            "classes": list(images.classes),
        },
        versions={"rkcnn": _version(), "torch": torch.__version__, "python": platform.python_version()},
        machine=machine(trainer.device) | {"ranks": trainer.ranks.world},
        commit=commit(),
        source=source_hash(),
    )
    with averaged(trainer):
        predictions = job.predictor.predictions(trainer.network).cpu().numpy()
        state = {name: value.detach().cpu().contiguous() for name, value in trainer.network.state_dict().items()}
    if result.finished:
        write_whole(job.folder / FILE, save(state, Facts.of(job.run.spec, images).as_metadata()))
        write_whole(job.folder / "predictions.npy", _npy(predictions.astype(np.int16)))
    write_whole(job.folder / "result.json", result.to_json())
    return result


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    import io

    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _version() -> str:
    from rkcnn import __version__

    return __version__


def peak_bytes(device: torch.device) -> int:
    """The most memory used: of the device, or of this process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def machine(device: torch.device) -> dict[str, Any]:
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "threads": torch.get_num_threads(),
        "gpu": gpu,
    }


def set_precision(precision: str) -> None:
    """tf32 lets matrix units round float32 products; fp32 forbids it."""
    torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.allow_tf32 = precision != "fp32"


@contextmanager
def stop_signals() -> Iterator[list[str]]:
    """Collects SIGTERM and Ctrl-C instead of dying of them, so that a run stops between two steps."""
    asked: list[str] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:  # a second time: at once
            raise KeyboardInterrupt
        asked.append(signal.Signals(number).name)

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
