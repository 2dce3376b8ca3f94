"""Solve an ordinary differential equation y' = f(t, y) by any named method."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isfinite
from numbers import Integral, Real

import torch
from torch import Tensor, nn

from rkcnn.error import InputError
from rkcnn.solvers.adams import adams
from rkcnn.solvers.adjoint import adjoint as solve_by_adjoint
from rkcnn.solvers.explicit import adaptive, explicit
from rkcnn.solvers.implicit import implicit
from rkcnn.solvers.methods import ADAMS, EMBEDDED, IMPLICIT, METHODS, SOLVERS
from rkcnn.solvers.solver_step import LOCAL, BatchReducer, Field, SolverStep, Time, at_least_float32


@dataclass(frozen=True)
class Solution:
    """The solution of an ODE at the times that were asked for.

    ts           the times
    ys           the values there, of shape (len(ts), *y0.shape); NaN at times that were not reached
    converged    whether all times were reached and all implicit equations solved, to the tolerance
    evaluations  calls of f, without those of a backward pass
    steps        time-steps taken, without the rejected ones
    """

    ts: Tensor
    ys: Tensor
    converged: bool
    evaluations: int
    steps: int


def solve(
    f: Callable[[Tensor, Tensor], Tensor],
    y0: Tensor,
    t: Tensor | Sequence[float],
    method: str = "dopri5",
    tol: float = 1e-6,
    *,
    steps: int | None = None,
    h: float | None = None,
    adjoint: bool = False,
    parameters: Sequence[Tensor] | None = None,
    max_evaluations: int = 10_000,
    max_iterations: int = 100,
) -> Solution:
    """Solve y' = f(t, y), y(t[0]) = y0, and return y at all the times in `t`, which increase or decrease.

    f                takes the time as a tensor without dimensions, and y in the shape of y0
    method           dopri5 and tsit5 choose their steps by `tol`, unless `steps` or `h` is given; all others take
                     equal steps between two times: euler, midpoint, heun, rk4, rk4_38, ab, abm, and the implicit
                     gauss1 to gauss3, radau2, radau3 and lobatto3c (docs/solvers.md says which to use when)
    tol              relative and absolute tolerance: of a step's error, or of the equations of abm and implicit steps
    steps, h         the number of equal steps between two times, or their largest size
    adjoint          integrate backwards for the gradient, with memory that does not grow with the number of steps
    parameters       tensors that f reads and that need a gradient, for adjoint and implicit methods; those of f
                     itself where f is a module
    max_evaluations  of f between two times, for dopri5 and tsit5
    max_iterations   for the equations of one implicit step

    Gradients flow to y0 and to all that f reads, not to t. What does not converge is returned with converged = False.
    """
    if not callable(f):
        raise InputError(f"f of type {type(f).__name__} given; it must be a function of t and y, as in lambda t, y: -y")
    try:
        times = torch.as_tensor(t, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"`t={t!r}` given; it must be a list of times, as in [0.0, 1.0]") from None
    _check(method, y0, times, tol, adjoint)
    start = at_least_float32(y0)
    field = _Flattened(f, start.shape)
    if parameters is None:
        parameters = tuple(f.parameters()) if isinstance(f, nn.Module) else ()
    if torch.is_grad_enabled() and (adjoint or method in IMPLICIT):
        _refuse_unknown_parameters(field, float(times[0]), start, method, parameters)
    fixed = None if method in EMBEDDED and steps is None and h is None else (steps, h)
    taken = 0

    def integrate(f: Field, y: Tensor, start: float, end: float) -> Iterator[SolverStep]:
        nonlocal taken
        count = 1 if fixed is None else _count_steps(method, start, end, *fixed)
        time = start
        if method in IMPLICIT:
            stepping = implicit(f, y, METHODS[method], parameters, count, tol, max_iterations, start=start, end=end)
        else:
            limit = None if method == "ab" or (fixed and method in METHODS) else tol
            stepping = take_steps(f, y, method, count, limit, start, end, max_evaluations=max_evaluations)
        for step in stepping:
            taken += float(step.t) != time  # the last step of an adaptive solver may be a rejected one
            time = float(step.t)
            yield step

    y = start.reshape(1, -1)
    ys, converged = [y], True
    for begin, end in pairwise(times.tolist()):
        if adjoint:
            step = solve_by_adjoint(integrate, field, y, parameters, begin, end)
        else:
            (step,) = deque(integrate(field, y, begin, end), maxlen=1)  # the last one
        y = step.y
        converged = converged and bool(torch.as_tensor(step.converged).all())
        if fixed is None and not converged:
            break
        ys.append(y)
    ys += [torch.full_like(y, torch.nan)] * (len(times) - len(ys))
    ts = times.to(start.device, start.dtype)
    return Solution(ts, torch.stack(ys).reshape(-1, *start.shape), converged, field.evaluations, taken)


def take_steps(
    f: Field,
    y: Tensor,
    method: str,
    steps: int,
    tol: float | None,
    start: float = 0.0,
    end: float = 1.0,
    per_image: bool = False,
    reducer: BatchReducer = LOCAL,
    max_evaluations: int = 1000,
) -> Iterator[SolverStep]:
    """Take the steps of an explicit or Adams method; with a tolerance dopri5 and tsit5 choose their own."""
    if method in ADAMS:
        return adams(f, y, steps, tol, per_image, start, end, reducer)
    if tol is not None:
        return adaptive(f, y, METHODS[method], tol, max_evaluations, per_image, start, end, reducer)
    return explicit(f, y, METHODS[method], steps, start, end)


class _Flattened:
    """Applies f to a state flattened to shape (1, n), so that solvers treat it as one image; counts the calls."""

    def __init__(self, f: Callable[[Tensor, Tensor], Tensor], shape: torch.Size) -> None:
        self.f, self.shape = f, shape
        self.evaluations = 0

    def __call__(self, t: Time, y: Tensor) -> Tensor:
        self.evaluations += 1
        slope = self.f(torch.as_tensor(t, dtype=y.dtype, device=y.device).reshape(()), y.reshape(self.shape))
        if not isinstance(slope, Tensor):
            raise InputError(f"f gave a {type(slope).__name__}; it must give a tensor of y0's shape")
        if slope.shape != self.shape:
            raise InputError(f"f gave a tensor of shape {tuple(slope.shape)}; it must be y0's, {tuple(self.shape)}")
        return slope.reshape(1, -1)


def _check(method: str, y0: Tensor, times: Tensor, tol: float, adjoint: bool) -> None:
    if not isinstance(method, str) or method not in SOLVERS:
        raise InputError(f"no method {method!r}; methods are {', '.join(SOLVERS)}")
    if not isinstance(y0, Tensor):
        raise InputError(f"y0 of type {type(y0).__name__} given; it must be a tensor, as in torch.tensor([1.0])")
    if not y0.is_floating_point() or y0.numel() == 0:
        raise InputError(f"y0 of {y0.dtype} with {y0.numel()} elements given; it must hold floating-point numbers")
    if not isinstance(tol, Real) or not tol > 0:
        raise InputError(f"`tol={tol}` given; a tolerance is a positive number")
    gaps = times.diff() if times.dim() == 1 and len(times) else torch.tensor(torch.nan)
    if not times.isfinite().all() or not ((gaps > 0).all() or (gaps < 0).all()):
        raise InputError(
            f"`t={times.tolist()}` given; it must be a list of times that increase, or decrease, all along"
        )
    if adjoint and method in IMPLICIT:
        raise InputError(
            f"{method} has no adjoint: its gradients come from the implicit function theorem; leave adjoint out"
        )


def _count_steps(method: str, start: float, end: float, steps: int | None, h: float | None) -> int:
    if (steps is None) == (h is None):
        raise InputError(
            f"{method} takes equal steps; give either steps, their number between two times, or h, their size"
        )
    if steps is not None:
        if not isinstance(steps, Integral) or steps < 1:
            raise InputError(f"`steps={steps!r}` given; it must be a whole number of at least 1")
        return int(steps)
    assert h is not None
    if not (isinstance(h, Real) and h > 0 and isfinite(h)):
        raise InputError(f"`h={h!r}` given; a step's size is a positive number, also where t decreases")
    return max(1, ceil(abs(end - start) / h - 1e-9))  # 0.3 / 0.1 is more than 3 in floating point


def _refuse_unknown_parameters(f: Field, t: float, y: Tensor, method: str, known: Sequence[Tensor]) -> None:
    """Raise InputError if f reads a tensor that needs a gradient and is not known: it would get none, silently."""
    with torch.enable_grad():
        out = f(t, y.detach())
    if _reads_others(out, known):
        raise InputError(
            f"f reads tensors that need a gradient, which {method} can't find by itself; name them in `parameters`, or "
            "make f a torch.nn.Module that has them" + ", all of them" * bool(known)
        )


def _reads_others(out: Tensor, known: Sequence[Tensor]) -> bool:
    """Whether a tensor that is not known, and was not made of known ones, has a part in the gradient of `out`."""
    leaves = {id(tensor) for tensor in known}
    seen = {tensor.grad_fn for tensor in known}  # what a known tensor was made of is its own affair
    waiting = [out.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)  # of the node at which a leaf's gradient arrives
        if variable is not None and id(variable) not in leaves:
            return True
        waiting += [before for before, _ in node.next_functions]
    return False
