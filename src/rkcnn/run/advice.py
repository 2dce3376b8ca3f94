"""Sentences about runs that are unlikely to learn, or that have not learned, and what to change. Imports no torch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rkcnn.data.sets import SETS
from rkcnn.error import InputError
from rkcnn.model.spec import spec_of

if TYPE_CHECKING:
    from rkcnn.data.images import Images
    from rkcnn.fit.trainer import Trainer
    from rkcnn.record.result import Result

FEWEST_STEPS = 300  # of a run that can be expected to learn something
NEAR_CHANCE = 0.9  # an error of more than this share of the constant error is about chance
LEARNED = 0.5  # a training error of at most this share of the constant error shows that the images are learned
FAR_ABOVE = (1.5, 0.02)  # a held-out error of so many training errors and so much more can have its cause in norms


def constant_error(training: Images, test: Images) -> float:
    """Return the error of always giving the class that most training images have."""
    largest = training.labels.bincount().argmax()
    return float((test.labels != largest).double().mean())


def advise_before(training: Images, trainer: Trainer) -> list[str]:
    """Return what is likely wrong with a run on a user's own images, before it starts."""
    if training.name in SETS:
        return []
    found = advise_labels(training)
    if (steps := trainer.steps * trainer.recipe.epochs) < FEWEST_STEPS:
        enough = -(-FEWEST_STEPS // trainer.steps)
        found.append(f"{_steps(steps)} is little to learn from: `epochs={enough}` would make {enough * trainer.steps}")
    return found


def advise_labels(training: Images) -> list[str]:
    """Return which classes no training image has, and what to do if the labels begin at 1."""
    counts = training.labels.bincount(minlength=len(training.classes)).tolist()
    missing = [name for name, count in zip(training.classes, counts, strict=True) if not count]
    if not missing:
        return []
    few = ", ".join(missing[:5]) + ", ..." * (len(missing) > 5)
    hint = ": if your classes begin at 1, subtract 1 from the labels, as in y - 1" if missing == ["0"] else ""
    return [f"no training image is of class {few}{hint}"]


def advise_after(result: Result) -> list[str]:
    """Return what may be wrong with a finished run, and what to change; nothing of runs that are cut short."""
    if result.error is None or not result.epochs or result.run.recipe.max_steps_per_epoch:
        return []
    return [*_advise_statistics(result), *_advise_chance(result)]


def _advise_statistics(result: Result) -> list[str]:
    """Return what can widen the gap between training and held-out error where evaluations of f share statistics.

    Where other weights are trained further the network can't be changed, and where the classifier alone is trained the
    training error has the shared statistics too.
    """
    recipe, error, (times, more) = result.run.recipe, result.error or 0.0, FAR_ABOVE
    learned = result.epochs[-1].training_error
    if recipe.initial_weights or recipe.head_only or error < times * learned + more:
        return []
    try:
        spec = spec_of(result.run.network)
        if spec is None or not spec.shares_statistics:
            return []
        other = replace(spec, statistics="each")
    except InputError:  # of a family that this process doesn't know, or where the data decide on the evaluations
        return []
    return [
        f"the error is {100 * learned:.2f} % on training images and {100 * error:.2f} % on {result.run.held_out} "
        "images; too few images can do that, and here so can running statistics of batch norm that all evaluations of "
        f"f share: {other} has a set for each"
    ]


def _advise_chance(result: Result) -> list[str]:
    """Return that a run has learned nothing, and what may help."""
    recipe, chance = result.run.recipe, result.data.get("constant_error")
    if result.error is None or not chance or result.error < NEAR_CHANCE * chance:
        return []
    about = f"this is about chance: always giving the same class errs in {100 * chance:.2f} %"
    steps = sum(epoch.images for epoch in result.epochs) // recipe.batch
    if steps < FEWEST_STEPS:
        enough = -(-FEWEST_STEPS * recipe.epochs // max(steps, 1))
        return [f"{about}, and the run had {_steps(steps)}; give it more, as in `epochs={enough}`"]
    if result.epochs[-1].training_error <= LEARNED * chance:
        larger = ", or larger ones (`size=64`)," if result.run.data.startswith("folder:") else ""
        return [f"{about}, though the training images are learned; more images{larger} may help"]
    return [f"{about}; try a lower learning rate, as in `lr={recipe.lr / 10:g}`, and look at the labels"]


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"
