"""What every solver yields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Field = Callable[[float | Tensor, Tensor], Tensor]
"""f(t, y): t a number, or a tensor that broadcasts against y where every image has its own time."""


@dataclass
class Backward:
    """What the gradient of an implicit step or an adjoint solve took: counted apart, known only after backward."""

    evaluations: int = 0
    products: int = 0  # of a vector with the Jacobian
    converged: bool | Tensor = True


@dataclass(frozen=True)
class SolverStep:
    """The state after one time-step, what it was made of, and what it took since the start.

    Where a count or a verdict depends on the data it is a tensor: of one element for the whole
    batch, or of one for each image. Not converging is a value here, not a warning.
    """

    y: Tensor
    increments: tuple[Tensor, ...]  # of this step; they sum to its change of y
    evaluations: int | Tensor  # of f, for each image, rejected steps included
    iterations: int | Tensor = 0
    residual: Tensor | None = None  # of this step
    converged: bool | Tensor = True  # every step so far; of an adaptive solver: it has reached the end
    backward: Backward | None = None  # of this step, where its gradient is solved for


def widen(y: Tensor) -> Tensor:
    """The state in float32 at least: solvers add small increments, also under autocast."""
    return y.float() if y.dtype in (torch.bfloat16, torch.float16) else y


def spread(value: Tensor, like: Tensor) -> Tensor:
    """One value a group (of the whole batch, or one an image) shaped to broadcast against the state."""
    return value.reshape(-1, *[1] * (like.dim() - 1))
