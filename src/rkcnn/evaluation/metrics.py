"""Metrics of predictions: error with its interval, confusion matrix, calibration, and the worst mistakes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from rkcnn.evaluation.binomial import wilson

BINS = 15  # of confidence, for the calibration error (Guo et al. 2017)


class Mistake(NamedTuple):
    """A misclassified image: its index, its class, the class it was taken for, and the probability given to that."""

    image: int
    label: int
    taken_for: int
    probability: float


@dataclass(frozen=True)
class Metrics:
    """How good the predictions for a set of images are; errors are fractions."""

    images: int
    wrong: int
    error: float
    interval: tuple[float, float]  # Wilson's, of the error, at 95 %
    balanced_error: float  # the mean of the errors of the classes that have images, each counted once
    class_errors: tuple[float | None, ...]  # None for a class without images
    class_f1: tuple[float | None, ...]  # 2 TP / (2 TP + FP + FN); None for a class that no image has or is taken for
    confusion: tuple[tuple[int, ...], ...]  # [i][j] counts images of class i taken for class j
    nll: float  # mean negative log-likelihood
    ece: float  # expected calibration error
    mistakes: tuple[Mistake, ...] = field(repr=False)  # all mistakes, those with the highest probability first

    def as_dict(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**values, "mistakes": [mistake._asdict() for mistake in self.mistakes]}


def measure(logits: Tensor, labels: Tensor, classes: int) -> Metrics:
    """Return the metrics of (N, classes) logits for (N,) labels."""
    logits, labels = logits.double().cpu(), labels.cpu()
    probability, predicted = logits.softmax(1).max(1)
    right = predicted == labels
    confusion = torch.bincount(labels * classes + predicted, minlength=classes**2).reshape(classes, classes)
    hits, total, taken = confusion.diag().tolist(), confusion.sum(1).tolist(), confusion.sum(0).tolist()
    class_errors = tuple(1 - hit / count if count else None for hit, count in zip(hits, total, strict=True))
    present = [error for error in class_errors if error is not None]
    wrong = int((~right).sum())
    mistaken = (~right).nonzero().flatten()
    mistaken = mistaken[probability[mistaken].argsort(descending=True, stable=True)]
    return Metrics(
        images=len(labels),
        wrong=wrong,
        error=wrong / len(labels),
        interval=wilson(wrong, len(labels)),
        balanced_error=sum(present) / len(present),
        class_errors=class_errors,
        class_f1=tuple(
            2 * hit / (count + predictions) if count + predictions else None
            for hit, count, predictions in zip(hits, total, taken, strict=True)
        ),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        nll=float(F.cross_entropy(logits, labels)),
        ece=calibration_error(probability, right),
        mistakes=tuple(Mistake(i, int(labels[i]), int(predicted[i]), float(probability[i])) for i in mistaken.tolist()),
    )


def calibration_error(probability: Tensor, right: Tensor) -> float:
    """Return the mean of |confidence - accuracy| over equal bins of confidence, weighted by their images."""
    bins = (probability * BINS).ceil().long().clamp(1, BINS) - 1
    gap = torch.zeros(BINS, dtype=torch.float64).index_add_(0, bins, probability - right.double())
    return float(gap.abs().sum() / len(right))
