"""How good predictions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from rkcnn.evaluation.binomial import wilson

BINS = 15  # of confidence, for the calibration error (Guo et al. 2017)


class Mistake(NamedTuple):
    """An image of a class, the class it was taken for, and how surely."""

    image: int
    label: int
    taken_for: int
    probability: float


@dataclass(frozen=True)
class Judgement:
    """Errors are fractions; `confusion[i][j]` counts images of class i taken for j; `worst` are the mistakes, the
    surest first.
    """

    images: int
    wrong: int
    error: float
    interval: tuple[float, float]
    class_errors: tuple[float | None, ...]  # None for a class without images
    confusion: tuple[tuple[int, ...], ...]
    nll: float
    ece: float
    worst: tuple[Mistake, ...]

    def as_dict(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**found, "worst": [mistake._asdict() for mistake in self.worst]}


def judge(logits: Tensor, labels: Tensor, classes: int) -> Judgement:
    """Everything about (N, classes) logits for (N,) labels."""
    logits, labels = logits.double().cpu(), labels.cpu()
    probability, predicted = logits.softmax(1).max(1)
    right = predicted == labels
    confusion = torch.bincount(labels * classes + predicted, minlength=classes**2).reshape(classes, classes)
    total = confusion.sum(1)
    wrong = int((~right).sum())
    mistaken = (~right).nonzero().flatten()
    mistaken = mistaken[probability[mistaken].argsort(descending=True, stable=True)]
    return Judgement(
        images=len(labels),
        wrong=wrong,
        error=wrong / len(labels),
        interval=wilson(wrong, len(labels)),
        class_errors=tuple(1 - int(confusion[i, i]) / int(total[i]) if total[i] else None for i in range(classes)),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        nll=float(F.cross_entropy(logits, labels)),
        ece=calibration_error(probability, right),
        worst=tuple(Mistake(i, int(labels[i]), int(predicted[i]), float(probability[i])) for i in mistaken.tolist()),
    )


def calibration_error(probability: Tensor, right: Tensor) -> float:
    """Mean |confidence - accuracy| over equal bins of confidence, weighted by their images."""
    bins = (probability * BINS).ceil().long().clamp(1, BINS) - 1
    gap = torch.zeros(BINS, dtype=torch.float64).index_add_(0, bins, probability - right.double())
    return float(gap.abs().sum() / len(right))
