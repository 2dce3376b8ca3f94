"""The result of one time-step, as every solver yields it, and the autocast settings that its backward pass restores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

Time = float | Tensor
"""A number, or a tensor that broadcasts against y where every image has its own time."""
Field = Callable[[Time, Tensor], Tensor]
"""The right-hand side f(t, y) of y' = f(t, y)."""


@dataclass
class BackwardStats:
    """What the backward pass of an implicit step or an adjoint solve took; filled in when it runs."""

    evaluations: int = 0
    products: int = 0  # of a vector with the Jacobian
    converged: bool | Tensor = True


@dataclass(frozen=True)
class SolverStep:
    """The state after one time-step, the increments that made it, and what the solve has taken so far.

    A figure that depends on the data is a tensor with one element for the whole batch, or one for each image.
    A solve that does not converge says so in `converged`; it neither warns nor raises.
    """

    t: Time  # the time of `y`; of an adaptive solver one element for the batch or for each image
    y: Tensor
    increments: tuple[Tensor, ...]  # of this step; their sum is its change of y
    evaluations: int | Tensor  # of f, for one image, since the start; rejected steps included
    iterations: int | Tensor = 0  # of implicit equations, since the start
    residual: Tensor | None = None  # of this step
    converged: bool | Tensor = True  # every step so far; of an adaptive solver: it has reached the end
    backward: BackwardStats | None = None  # of this step, where its gradient is solved for


def at_least_float32(y: Tensor) -> Tensor:
    """Convert half precision to float32: solvers add small increments, also under autocast."""
    return y.float() if y.dtype in (torch.bfloat16, torch.float16) else y


def align(values: Tensor, y: Tensor) -> Tensor:
    """Reshape one value for the batch, or one for each image, so that it broadcasts against the state y."""
    return values.reshape(-1, *[1] * (y.dim() - 1))


class Autocast:
    """Remembers whether and how autocast is enabled on a kind of device; the meta device has none."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.available = torch.amp.is_autocast_available(device)
        self.enabled = self.available and torch.is_autocast_enabled(device)
        self.dtype = torch.get_autocast_dtype(device) if self.enabled else None

    @property
    def eps(self) -> float:
        """The relative precision that autocast leaves to f; 0 where it is off."""
        return torch.finfo(self.dtype).eps if self.dtype is not None else 0.0

    def restore(self) -> AbstractContextManager[object]:
        """Return a context in which autocast is as it was."""
        if not self.available:
            return nullcontext()
        return torch.autocast(self.device, dtype=self.dtype, enabled=self.enabled)
