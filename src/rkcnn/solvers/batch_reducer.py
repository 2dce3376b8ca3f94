"""What a solver may ask about the whole batch."""

from __future__ import annotations

from torch import Tensor


class BatchReducer:
    """A batch that is all here: every answer is what was given.

    Where processes hold a share of the batch each, another `BatchReducer` asks them all, and a solver that judges
    the batch by it takes the same steps in each of them. All must then ask the same questions in the same order.
    """

    def mean(self, part: Tensor, count: float) -> tuple[Tensor, float | Tensor]:
        """The mean of means over `count` elements each, and how many elements that is; differentiable."""
        return part, count

    def sum(self, part: Tensor) -> Tensor:
        """The sum; differentiable."""
        return part

    def most(self, part: Tensor) -> Tensor:
        """The largest of each element; NaN may count as infinite."""
        return part

    def every(self, verdict: Tensor) -> bool:
        """Whether all of it holds."""
        return bool(verdict.all())


HERE = BatchReducer()
