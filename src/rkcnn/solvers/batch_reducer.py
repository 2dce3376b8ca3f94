"""Reductions over the images of a batch, wherever they are held."""

from __future__ import annotations

from torch import Tensor


class BatchReducer:
    """Reduces over a batch that is held by this process alone: every result is the argument itself.

    In distributed training each process holds a share of the batch. A subclass then reduces over all of them, so that
    solvers which judge the whole batch take the same steps everywhere. All processes must make the same calls in
    the same order.
    """

    def mean(self, part: Tensor, count: float) -> tuple[Tensor, float | Tensor]:
        """Return the mean, given this process's mean over `count` elements, and the total count; differentiable."""
        return part, count

    def sum(self, part: Tensor) -> Tensor:
        """Return the sum of each element over all processes; differentiable."""
        return part

    def max(self, part: Tensor) -> Tensor:
        """Return the largest value of each element over all processes; NaN may count as infinite."""
        return part

    def all(self, condition: Tensor) -> bool:
        """Return whether every element is true in every process."""
        return bool(condition.all())


LOCAL = BatchReducer()
