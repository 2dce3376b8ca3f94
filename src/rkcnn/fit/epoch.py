"""The numbers of one epoch of training. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingEpoch:
    """The numbers of one epoch: `training_error` is the share of wrong answers, `loss` the mean over the images.

    `seconds` counts the training steps alone, without evaluations and checkpoints.
    """

    number: int  # counted from 0
    loss: float
    training_error: float
    lr: float  # learning rate of the last step
    images: int = 0  # of all ranks together
    seconds: float = 0.0
    unconverged: float | None = None  # share of solves that did not converge, where a solver can fail to
    evaluations: float | None = None  # of f in a forward pass, where the data decides how many
    backward_evaluations: float | None = None  # of f for the gradient, where that takes a solve of its own
