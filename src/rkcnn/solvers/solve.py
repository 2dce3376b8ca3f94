"""Solve an ordinary differential equation y' = f(t, y) by any method."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.solvers.adams import adams
from rkcnn.solvers.adjoint import adjoint as solve_by_adjoint
from rkcnn.solvers.arguments import (
    check_range,
    check_state,
    count_steps,
    read_count,
    read_method,
    read_parameters,
    read_positive,
    read_steps,
    read_times,
)
from rkcnn.solvers.explicit import adaptive, explicit
from rkcnn.solvers.implicit import implicit
from rkcnn.solvers.methods import ADAMS, TABLEAUS
from rkcnn.solvers.solver_step import BatchReducer, Field, SolverStep, Time, at_least_float32
from rkcnn.solvers.tableau import Tableau


@dataclass(frozen=True)
class Solution:
    """The solution of an ODE at the times that were asked for.

    ts           the times, in the precision in which they were given; those of a list are in float64
    ys           the values there, of shape (len(ts), *y0.shape); NaN at times that were not reached
    converged    whether all times were reached and all implicit equations solved, to the tolerance, and all values are
                 finite; it says nothing of a backward pass
    evaluations  calls of f, without those of a backward pass
    steps        time-steps taken, without the rejected ones
    """

    ts: Tensor
    ys: Tensor
    converged: bool
    evaluations: int
    steps: int

    def __repr__(self) -> str:  # without the values, which would fill the screen
        times = f"{len(self.ts):,} times from {float(self.ts[0]):g} to {float(self.ts[-1]):g}"
        end = "converged" if self.converged else "not converged"
        counts = f"{self.evaluations:,} evaluations in {self.steps:,} steps"
        return f"<Solution: {times}, values of shape {tuple(self.ys.shape[1:])}, {end}, {counts}>"


def solve(
    f: Callable[[Tensor, Tensor], Tensor],
    y0: Tensor,
    t: Tensor | Sequence[float],
    method: str | Tableau = "dopri5",
    tol: float = 1e-6,
    *,
    steps: int | None = None,
    h: float | None = None,
    adjoint: bool = False,
    parameters: Iterable[Tensor] | None = None,
    max_evaluations: int = 10_000,
    max_iterations: int = 100,
) -> Solution:
    """Solve y' = f(t, y), y(t[0]) = y0, and return y at all the times in `t`, which increase or decrease.

    f                takes the time as a tensor without dimensions, in the precision of y, and y in the shape of y0; it
                     returns a new tensor of that shape and leaves y as it is
    method           dopri5 and tsit5 choose their steps by `tol`, unless `steps` or `h` is given; all others take
                     equal steps between two times: euler, midpoint, heun, rk4, rk4_38, ab, abm, and the implicit
                     gauss1 to gauss3, radau2, radau3 and lobatto3c (docs/solvers.md says which to use when); a Tableau
                     of your own chooses its steps by `tol` if it is explicit and has embedded weights
    tol              relative and absolute tolerance: of a step's error, or of the equations of abm and implicit steps
    steps, h         the number of equal steps between two times, or their largest size
    adjoint          integrate backwards for the gradient, with memory that does not grow with the number of steps
    parameters       tensors that f reads and that need a gradient, for adjoint and implicit methods; those of f
                     itself where f is a module
    max_evaluations  of f between two times, where steps are chosen by `tol`
    max_iterations   for the equations of one implicit or abm step

    Gradients flow to y0 and to all that f reads, not to t. What does not converge is returned with converged = False.
    With adjoint and implicit methods the gradient takes a solve of its own: where that does not converge, the gradient
    is NaN. These methods also call f once more, at t[0], to see which tensors it reads; that call is not counted.
    """
    if not callable(f):
        raise InputError(f"f of type {type(f).__name__} given; it must be a function of t and y, as in lambda t, y: -y")
    tableau, times = read_method(method), read_times(t)
    check_state(y0)
    name = tableau.name if tableau else str(method)
    solves_stages = tableau is not None and tableau.kind != "explicit"
    if adjoint and solves_stages:
        raise InputError(
            f"{name} has no adjoint: its gradients come from the implicit function theorem; leave adjoint out"
        )
    tol = read_positive("tol", tol)
    max_evaluations = read_count("max_evaluations", max_evaluations)
    max_iterations = read_count("max_iterations", max_iterations)
    known = read_parameters(parameters, f)
    adapts = tableau is not None and tableau.adapts and steps is None and h is None
    equal = None if adapts else read_steps(name, steps, h)
    start = at_least_float32(y0)
    check_range(times, start.dtype)
    field = _Flattened(f, start.shape)
    if torch.is_grad_enabled() and (adjoint or solves_stages):
        _refuse_unknown_parameters(field, float(times[0]), start, name, known)
    stepper = _Stepper(tableau, name, tol, equal, known, max_evaluations, max_iterations)
    y = start.reshape(1, -1)
    ys, converged = [y], True
    for begin, end in pairwise(times.tolist()):
        if adjoint:
            step = solve_by_adjoint(stepper, field, y, known, begin, end, nan_if_unconverged=True)
        else:
            (step,) = deque(stepper(field, y, begin, end), maxlen=1)  # the last one
        y = step.y
        converged = converged and bool(torch.as_tensor(step.converged).all())
        if adapts and not converged:
            break
        ys.append(y)
    ys += [torch.full_like(y, torch.nan)] * (len(times) - len(ys))
    values = torch.stack(ys).reshape(-1, *start.shape)
    given = t.detach() if isinstance(t, Tensor) and t.is_floating_point() else times
    ts = given.to(start.device, copy=True)
    return Solution(ts, values, converged and _is_finite(values), field.evaluations, stepper.taken)


def take_steps(
    f: Field,
    y: Tensor,
    method: str,
    steps: int,
    tol: float | None,
    *,
    start: float,
    end: float,
    per_image: bool,
    reducer: BatchReducer,
    max_evaluations: int,
) -> Iterator[SolverStep]:
    """Take a network's steps by an explicit or Adams method; with a tolerance dopri5 and tsit5 choose their own."""
    if method in ADAMS:
        return adams(f, y, steps, tol, per_image, start, end, reducer)
    if tol is not None:
        return adaptive(f, y, TABLEAUS[method], tol, max_evaluations, per_image, start, end, reducer)
    return explicit(f, y, TABLEAUS[method], steps, start, end)


@dataclass
class _Stepper:
    """Takes the steps between two times, by the method and settings of a solve; counts them."""

    tableau: Tableau | None  # None for the Adams methods
    name: str
    tol: float
    equal: tuple[int | None, float | None] | None  # the number or the size of equal steps; None if `tol` chooses them
    parameters: Sequence[Tensor]
    max_evaluations: int
    max_iterations: int
    taken: int = 0

    def __call__(self, f: Field, y: Tensor, start: float, end: float) -> Iterator[SolverStep]:
        time = start if self.equal else 0.0
        for step in self._steps(f, y, start, end):
            self.taken += float(step.t) != time  # the last step of an adaptive solver may be a rejected one
            time = float(step.t)
            yield step

    def _steps(self, f: Field, y: Tensor, start: float, end: float) -> Iterator[SolverStep]:
        if self.equal is None:
            assert self.tableau is not None

            def shifted(t: Time, y: Tensor) -> Tensor:  # the time since the start has more digits than the time itself
                return f(start + t, y)

            return adaptive(
                shifted, y, self.tableau, self.tol, self.max_evaluations, end=end - start, clock=torch.float64
            )
        steps = count_steps(*self.equal, start, end)
        if self.tableau is None:
            tol = None if self.name == "ab" else self.tol
            return adams(f, y, steps, tol, start=start, end=end, max_iterations=self.max_iterations)
        if self.tableau.kind == "explicit":
            return explicit(f, y, self.tableau, steps, start, end)
        return implicit(
            f,
            y,
            self.tableau,
            self.parameters,
            steps,
            self.tol,
            self.max_iterations,
            start=start,
            end=end,
            nan_if_unconverged=True,
        )


class _Flattened:
    """Applies f to a state flattened to shape (1, n), so that solvers treat it as one image; counts the calls.

    Raises InputError if f returns what is no slope, or changes y or the slope before it, which a step still needs.
    """

    def __init__(self, f: Callable[[Tensor, Tensor], Tensor], shape: torch.Size) -> None:
        self.f, self.shape = f, shape
        self.evaluations = 0
        self.before: Callable[[], Tensor | None] = lambda: None  # the slope before, while a solver still holds it
        self.version = 0  # of that slope

    def __call__(self, t: Time, y: Tensor) -> Tensor:
        self.evaluations += 1
        version = _version(y)
        slope = self.f(torch.as_tensor(t, dtype=y.dtype, device=y.device).reshape(()), y.reshape(self.shape))
        if not isinstance(slope, Tensor):
            raise InputError(f"f gave a {type(slope).__name__}; it must give a tensor of y0's shape")
        if slope.shape != self.shape:
            raise InputError(f"f gave a tensor of shape {tuple(slope.shape)}; it must be y0's, {tuple(self.shape)}")
        if slope.is_complex():
            raise InputError(f"f gave a tensor of {slope.dtype} for a real y; it must give real numbers")
        before = self.before()
        if _version(y) != version or (before is not None and _version(before) != self.version):
            raise InputError("f works in place, on y or on a slope that it gave before; it must give a new tensor")
        flat = slope.reshape(1, -1)
        self.before, self.version = weakref.ref(flat), _version(flat)
        return flat


def _version(tensor: Tensor) -> int:
    """Return how often a tensor was changed in place; torch doesn't count it for those of inference mode."""
    return 0 if tensor.is_inference() else tensor._version


def _is_finite(values: Tensor) -> bool:
    try:
        return bool(values.isfinite().all())
    except RuntimeError:  # under torch.vmap the values of many solves can't decide one bool
        return True


def _refuse_unknown_parameters(f: _Flattened, t: float, y: Tensor, method: str, known: Sequence[Tensor]) -> None:
    """Raise InputError if f reads a tensor that needs a gradient and is not known: it would get none, silently.

    f is called once, at t; neither the count of calls nor torch's random numbers change by it.
    """
    with torch.enable_grad(), torch.random.fork_rng([y.device] if y.is_cuda else []):
        out = f(t, y.detach())
    f.evaluations = 0
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
