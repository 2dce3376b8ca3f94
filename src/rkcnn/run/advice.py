"""Sentences about runs that are unlikely to learn, or that have not learned, and what to change. Imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rkcnn.data.sets import SETS

if TYPE_CHECKING:
    from rkcnn.data.images import Images
    from rkcnn.fit.trainer import Trainer
    from rkcnn.record.result import Result

FEWEST_STEPS = 300  # of a run that can be expected to learn something
NEAR_CHANCE = 0.9  # an error of more than this share of the constant error is about chance
LEARNED = 0.5  # a training error of at most this share of the constant error shows that the images are learned


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
    """Return that a finished run has learned nothing, and what to change; nothing of runs that are cut short."""
    recipe, chance = result.run.recipe, result.data.get("constant_error")
    if result.error is None or not chance or recipe.max_steps_per_epoch or result.error < NEAR_CHANCE * chance:
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
