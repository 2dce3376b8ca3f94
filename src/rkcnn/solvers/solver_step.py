"""What all solvers share: the result of one time-step, sums over solves, and reductions over the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor

from rkcnn.error import InputError

P = ParamSpec("P")
T = TypeVar("T")

Time = float | Tensor
"""A number, or a tensor that broadcasts against y where every image has its own time."""
Field = Callable[[Time, Tensor], Tensor]
"""The right-hand side f(t, y) of y' = f(t, y)."""
HALF = (torch.bfloat16, torch.float16)


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
    return y.float() if y.dtype in HALF else y


def align(values: Tensor, y: Tensor) -> Tensor:
    """Reshape one value for the batch, or one for each image, so that it broadcasts against the state y."""
    return values.reshape(-1, *[1] * (y.dim() - 1))


def step_size(start: float, end: float, steps: int) -> float:
    """Return the size of that many equal steps from start to end."""
    if steps < 1:
        raise InputError(f"`steps={steps}` given; a solve takes at least 1")
    return (end - start) / steps


def first_derivative_only(what: str, instead: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make the backward of an autograd function raise InputError under `create_graph=True`.

    Torch's own `once_differentiable` lets it pass where the incoming gradient is a constant, and a second derivative
    then lacks this part without a word. `what` is what was differentiated, `instead` what would work.
    """

    def decorate(backward: Callable[P, T]) -> Callable[P, T]:
        @wraps(backward)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            if torch.is_grad_enabled():  # in a backward pass only with create_graph=True
                raise InputError(f"`create_graph=True` given, but {what} has first derivatives only; {instead}")
            return backward(*args, **kwargs)

        return checked

    return decorate


first_derivative_of_solve = first_derivative_only(
    "an implicit or adjoint solve", "for second derivatives use an explicit or Adams method without adjoint"
)


def pull_back(
    out: Tensor, inputs: Sequence[Tensor], vector: Tensor, retain_graph: bool = False
) -> tuple[Tensor | None, ...]:
    """Return the product of `vector` with the Jacobian of `out` in each input; None for one that `out` doesn't read."""
    if not out.requires_grad:
        return (None,) * len(inputs)
    return torch.autograd.grad(out, inputs, vector, retain_graph=retain_graph, allow_unused=True)


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


def judge_by(images: int, per_image: bool, reducer: BatchReducer) -> tuple[int, BatchReducer]:
    """Return the number of groups of images that a solver judges, and what reduces over the processes of a group.

    Every image is a group, which one process holds, or the whole batch is one, which all processes may share.
    """
    return (images, LOCAL) if per_image else (1, reducer)


class SolveAverages(NamedTuple):
    """Averages over solves: the share that did not converge, and evaluations of f, forward and backward.

    A solve converged if its forward solve did and, where its gradient is solved for, that solve too.
    """

    unconverged: float
    evaluations: float
    backward_evaluations: float
    backward_products: float


class SolverStats:
    """Sums over solves since the last reset, kept on the device so that adding to them never waits for it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.restore((0, 0.0, 0.0, 0.0, 0.0))

    def sums(self) -> tuple[float, ...]:
        """Return all totals as numbers, for a checkpoint."""
        backwards = [backward for _, each in self.added for backward in each]
        unconverged = sum((float(_unconverged(*each)) for each in self.added), self.earlier[0])
        evaluations = sum((backward.evaluations for backward in backwards), self.earlier[1])
        products = sum((backward.products for backward in backwards), self.earlier[2])
        return self.solves, unconverged, float(self.evaluations), evaluations, products

    def restore(self, sums: Sequence[float]) -> None:
        """Restore the totals that `sums()` returned."""
        self.solves = int(sums[0])
        self.evaluations: float | Tensor = sums[2]
        self.earlier = sums[1], sums[3], sums[4]  # unconverged, backward evaluations and products before the restore
        self.added: list[tuple[bool | Tensor, list[BackwardStats]]] = []

    def add(self, last: SolverStep, backwards: Sequence[BackwardStats | None] = ()) -> None:
        """Count one solve by its last step; `backwards` are filled in by its backward pass, before `read`."""
        self.added.append((last.converged, [backward for backward in backwards if backward is not None]))
        self.solves += 1
        self.evaluations = self.evaluations + _mean(torch.as_tensor(last.evaluations))

    def read(self) -> SolveAverages:
        """Return the averages of a solve since the last reset."""
        solves, *sums = self.sums()
        return SolveAverages(*(value / max(solves, 1) for value in sums))


def _unconverged(converged: bool | Tensor, backwards: Sequence[BackwardStats]) -> Tensor:
    """Return the share of a solve's images that did not converge, forward or backward."""
    for backward in backwards:
        converged = converged & backward.converged
    return _mean(~torch.as_tensor(converged))


def _mean(x: Tensor) -> Tensor:
    return x.detach().double().mean()
