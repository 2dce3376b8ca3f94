"""Predictions of a network for every image of a set, and their metrics.

Metrics are the error with its interval, the confusion matrix, calibration, and the worst mistakes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rkcnn.data.batches import Batches
from rkcnn.data.images import Images
from rkcnn.evaluation.binomial import wilson

BATCH = 1000  # as in the ODE-Net script; only the paper's abm row depends on it (docs/spec.md, 4)


class Predictor:
    """Holds a set of images on a device and predicts their classes with any network, as often as needed."""

    def __init__(self, images: Images, device: torch.device, precision: str = "fp32", batch: int = BATCH) -> None:
        self.images, self.device, self.precision = images, device, precision
        self.batches = Batches(images, min(batch, len(images)), seed=0, shuffle=False, device=device)

    @torch.no_grad()
    def logits(self, network: nn.Module, on_batch: Callable[[int], object] = lambda images: None) -> Tensor:
        """Return float32 (N, classes) logits on the device, in the order of the images; the network stays unchanged.

        `on_batch` is called with the number of images of each batch when it is done.
        """
        training = network.training
        network.eval()
        logits = []
        try:
            for batch in self.batches.epoch(0):
                with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.precision == "bf16"):
                    logits.append(network(batch.pixels).float())
                on_batch(len(logits[-1]))
        finally:
            network.train(training)
        return torch.cat(logits)

    def predictions(self, network: nn.Module) -> Tensor:
        """Return int64 (N,) classes, those of the largest logits."""
        return self.logits(network).argmax(1)

    def error(self, predictions: Tensor) -> float:
        """Return the fraction of the predictions that is wrong."""
        return float((predictions.cpu() != self.images.labels).double().mean())


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
