"""How good a trained network is on test images, on corrupted ones, and with its f solved by other methods."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from rkcnn.data.images import Images
from rkcnn.data.options import OwnOptions
from rkcnn.data.progress import Progress
from rkcnn.error import InputError, did_you_mean
from rkcnn.evaluation.corruption import CORRUPTIONS, GRADES, corrupt
from rkcnn.evaluation.metrics import Metrics, Predictor, measure
from rkcnn.model.fused import FusedNetwork
from rkcnn.run.device import pick_device
from rkcnn.solvers.methods import METHOD_NAMES
from rkcnn.use.held_out import label_arrays, load_other_images, load_tested_images
from rkcnn.use.images import Labelled
from rkcnn.use.load import Classifier, load
from rkcnn.use.other_solver import (
    MOST_STEPS,
    CountedSolver,
    SolverChoice,
    describe_solver,
    find_ode_periods,
    solve_by,
)
from rkcnn.use.train import TrainingResult


def evaluate(
    model: Classifier | TrainingResult | str | Path,
    data: str | Labelled | Images | None = None,
    *,
    size: int | None = None,
    split: float | None = None,
    skip_bad: bool = False,
    device: str = "auto",
    method: str | None = None,
    steps: int | None = None,
    tol: float | None = None,
    corruption: tuple[str, int] | None = None,
) -> Metrics:
    """Measure a trained network on test images: its error with a 95 % interval, what it confuses, how sure it is.

    model      what `rkcnn.load` or `rkcnn.train` returned, a run's folder, a weights file, or a name in
               `list_pretrained()`
    data       the images to test with: a name as in `rkcnn.load_images` (its test images are used), arrays (x, y), or
               `Images`; without it, the images that the run was tested with
    size, split, skip_bad
               as in `rkcnn.load_images`; an option that is not given is that of the run where the images are the run's,
               and a split that would test with images of its training is refused. Other images of your own get the
               channels, and those of a folder the size, that the network was trained on; all of them are test images
               if they have no test set and no split is given
    device     cpu, cuda, cuda:N, or auto: a GPU if there is one
    method, steps, tol
               solve the network's f by another method than in training, as in `rkcnn.solve`
    corruption corrupt the images first: noise, blur, contrast or shift with a grade from 1 to 5, as in ("noise", 3)

    The images must have the size, channels and classes that the network was trained on. They are normalised as the
    training images were.
    """
    if isinstance(model, TrainingResult):
        model = model.folder
    classifier = model if isinstance(model, Classifier) else load(model)
    if corruption is not None and not (isinstance(corruption, tuple | list) and len(corruption) == 2):
        raise InputError(f"`corruption={corruption!r}` given; give a kind and a grade from 1 to 5, as in ('noise', 3)")
    choice = SolverChoice(method, steps, tol)
    if choice != SolverChoice():
        classifier = replace(classifier, network=solve_by(classifier.network, choice))
    images = find_images(classifier, data, OwnOptions(size, split, skip_bad))
    if corruption is not None:
        kind, grade = corruption
        images = corrupt(images, kind, grade)
    return measure_on(classifier, images, device)


OnProgress = Callable[[int, int], object]
"""Called with the number of images that are done and that of all; images that are evaluated twice count twice."""


def ignore_progress(done: int, total: int) -> None:
    """Say nothing."""


def measure_on(
    classifier: Classifier, images: Images, device: str, on_progress: OnProgress = ignore_progress
) -> Metrics:
    """Measure a trained network on these images, normalised as those it was trained on."""
    logits = compute_logits(classifier, images, device, on_progress)
    return measure(logits, images.labels, len(images.classes))


def compute_logits(
    classifier: Classifier, images: Images, device: str, on_progress: OnProgress = ignore_progress
) -> Tensor:
    """Return the logits (N, classes) for these images, on a GPU in the precision of the training."""
    predictor = make_predictor(classifier, images, device)
    network = fuse(classifier, len(images), predictor.device)
    return predictor.logits(network, count_images(len(images), on_progress))


def count_images(total: int, on_progress: OnProgress) -> Callable[[int], None]:
    """Return what a `Predictor` calls with the images of each batch; it calls `on_progress` with their sum so far."""
    done = 0

    def add(images: int) -> None:
        nonlocal done
        done += images
        on_progress(done, total)

    return add


def fuse(classifier: Classifier, images: int, device: torch.device) -> FusedNetwork:
    """Return a copy of the network for inference on so many images, on a GPU in the precision of the training."""
    precision = find_precision(classifier, device)
    network = classifier.network
    if next(network.parameters()).dtype != torch.float32:  # converted by its user
        network = copy.deepcopy(network).float()
    return FusedNetwork(network, precision, images=images, size=classifier.size).to(device)


def find_precision(classifier: Classifier, device: torch.device) -> str:
    """Return the precision that the network was trained in; fp32 where no record says, and for bf16 on a CPU.

    Most CPUs have no bf16 of their own: RKCNN-I-2_2_2@k=120 takes 5 times as long in it as in fp32.
    """
    trained = classifier.result.run.recipe.precision if classifier.result else "fp32"
    return "fp32" if trained == "bf16" and device.type == "cpu" else trained


def make_predictor(classifier: Classifier, images: Images, device: str) -> Predictor:
    """Return a predictor of these images, normalised as those of the training; on a GPU in its precision."""
    place = pick_device(device)
    return Predictor(classifier.description.prepare(images), place, find_precision(classifier, place))


def find_images(classifier: Classifier, data: str | Labelled | Images | None, own: OwnOptions) -> Images:
    """Return the images to test with; see `evaluate`."""
    result, progress = classifier.result, Progress(sys.stderr)
    match data:
        case None if result is not None:
            return load_tested_images(result, own=own, progress=progress)
        case None:
            raise InputError(
                f"the weights of {classifier.name} have no result beside them that names their data; say which images "
                "to test with, as in `data='mnist'`"
            )
        case str():
            return load_other_images(classifier, data, own=own, progress=progress)
        case _ if own.size is not None:
            raise InputError(f"`size={own.size}` given with images that are not resized; leave it out")
        case Images() if own.split is not None:
            raise InputError(f"`split={own.split}` given with Images, which are tested with as a whole; leave it out")
        case Images():
            return data
        case (pixels, labels):
            return label_arrays(classifier, (pixels, labels), own.split)
    raise InputError(
        f"data of type {type(data).__name__} given; give a name such as 'mnist' or 'folder:PATH', arrays (x, y) or "
        "Images"
    )


_NAMES = ("method", "steps", "tol")


@dataclass(frozen=True)
class SolvedBy:
    """How good a network is if its f is solved by one method."""

    solver: str  # of each period, in words
    metrics: Metrics
    changed: float  # share of the images that are answered differently than by the solver of the training
    evaluations: float  # of f for an image, mean
    unconverged: float  # share of the solves


def read_choice(text: str) -> SolverChoice:
    """Return the choice that "method=dopri5,tol=1e-3" or "method=euler,steps=8" says."""
    values: dict[str, str] = {}
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if name not in _NAMES or not equals or not value or name in values:
            hint = f" (did you mean method={name}?)" if item.strip() in METHOD_NAMES else did_you_mean(name, _NAMES)
            raise InputError(
                f"{item.strip()!r} given{hint}; give a method with its steps or tolerance, as in "
                "`with=method=dopri5,tol=1e-3` or `with=method=euler,steps=8`"
            )
        values[name] = value
    steps, tol = values.get("steps"), values.get("tol")
    if steps is not None and not re.fullmatch("[0-9]{1,6}", steps):
        raise InputError(f"steps={steps} given; give a whole number from 1 to {MOST_STEPS}")
    try:
        return SolverChoice(values.get("method"), int(steps) if steps else None, float(tol) if tol else None)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"tol={tol} given; a tolerance is a number, as in tol=1e-3") from None


def compare_solvers(
    classifier: Classifier,
    images: Images,
    choices: Sequence[SolverChoice],
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> list[SolvedBy]:
    """Measure a network as it was trained, then with its f solved by each of the choices."""
    networks = [solve_by(classifier.network, choice) for choice in (SolverChoice(), *choices)]
    predictor = make_predictor(classifier, images, device)
    on_batch = count_images(len(networks) * len(images), on_progress)
    found: list[SolvedBy] = []
    first = None
    for each in networks:
        network = fuse(replace(classifier, network=each), len(images), predictor.device)
        logits = predictor.logits(network, on_batch)
        answers = logits.argmax(1)
        first = answers if first is None else first
        solvers = [period.solver for period in find_ode_periods(network)]
        counts = [solver.counts for solver in solvers if isinstance(solver, CountedSolver)]
        found.append(
            SolvedBy(
                "; ".join(dict.fromkeys(map(describe_solver, solvers))),
                measure(logits, images.labels, len(images.classes)),
                float((answers != first).double().mean()),
                sum(each.evaluations / each.images for each in counts),
                sum(each.unconverged for each in counts) / sum(each.images for each in counts),
            )
        )
    return found


def measure_corrupted(
    classifier: Classifier, images: Images, device: str = "auto", on_progress: OnProgress = ignore_progress
) -> tuple[float, dict[str, tuple[float, ...]]]:
    """Return the error of the clean images, and for each kind of corruption that of each grade, from 1 on."""
    total = (1 + len(CORRUPTIONS) * len(GRADES)) * len(images)
    network = fuse(classifier, total, pick_device(device))
    on_batch = count_images(total, on_progress)

    def find_error(shown: Images) -> float:
        predictor = make_predictor(classifier, shown, device)
        return predictor.error(predictor.logits(network, on_batch).argmax(1))

    clean = find_error(images)
    return clean, {kind: tuple(find_error(corrupt(images, kind, grade)) for grade in GRADES) for kind in CORRUPTIONS}
