"""Implicit Runge–Kutta steps without matrices, with gradients by the implicit function theorem.

Their equations are solved as fixed points x = g(x), by Anderson acceleration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rkcnn.solvers.explicit import combine
from rkcnn.solvers.solver_step import (
    LOCAL,
    Autocast,
    BackwardStats,
    BatchReducer,
    Field,
    SolverStep,
    align,
    at_least_float32,
    first_derivative_of_solve,
    judge_by,
    pull_back,
    step_size,
)
from rkcnn.solvers.tableau import Tableau

MEMORY = 5  # past iterates mixed; 3 to 8 make little difference (Walker & Ni 2011)


@dataclass(frozen=True)
class FixedPoint:
    """A point with g(x) = x up to `residual`; each figure has one element for the batch, or one for each image."""

    x: Tensor
    iterations: Tensor
    residual: Tensor  # max |g(x) - x| at the iterate that was kept
    converged: Tensor


def fixed_point(
    g: Callable[[Tensor], Tensor],
    x: Tensor,
    tol: float,
    max_iterations: int,
    per_image: bool = False,
    always_best: bool = False,
    reducer: BatchReducer = LOCAL,
) -> FixedPoint:
    """Iterate x <- sum_i alpha_i g(x_i), alpha minimising |sum_i alpha_i (g(x_i) - x_i)| with sum 1.

    x has the shape (stages, images, ...). A group is the whole batch or, with `per_image`, one image, whose result
    then does not depend on the others. A group converges when |g(x) - x| < tol + tol max(|g(x)|, |x|) in every element;
    its result is that g(x). A group that runs out of iterations, or whose g(x) is no longer finite, has as
    its result the iterate x with the least residual, which is no worse than the first guess; with `always_best` so
    has one that converges. Memory: 2 x MEMORY copies of x.
    """
    shape = x.transpose(0, 1).shape
    groups, group_reducer = judge_by(shape[0], per_image, reducer)
    if x.is_meta:  # counting costs: the fewest iterations that any data can take
        ones = torch.ones(groups, dtype=torch.long)
        return FixedPoint(g(x), ones, torch.zeros(groups), ones.bool())

    def flat(value: Tensor) -> Tensor:  # (groups, unknowns)
        return value.transpose(0, 1).reshape(groups, -1)

    mixed = result = flat(x)
    active = torch.ones(groups, dtype=torch.bool, device=x.device)
    converged = torch.zeros_like(active)
    iterations = torch.zeros_like(active, dtype=torch.long)
    residual = torch.full_like(active, torch.inf, dtype=x.dtype)
    points: list[Tensor] = []
    gaps: list[Tensor] = []
    gram = torch.zeros(groups, 0, 0, dtype=x.dtype, device=x.device)  # inner products of the gaps
    for _ in range(max_iterations):
        value = flat(g(mixed.reshape(shape).transpose(0, 1)))
        iterations = iterations + active
        gap = value - mixed
        distance = gap.abs()
        bound = torch.maximum(value.abs(), mixed.abs()).mul_(tol).add_(tol)
        unsettled = ~(distance < bound).all(1)
        size, unsettled = group_reducer.max(torch.stack([distance.amax(1), unsettled.to(x.dtype)]))
        settled = active & (unsettled == 0)
        better = active & (size < residual)
        result = torch.where(better[:, None], mixed, result)
        if not always_best:
            result = torch.where(settled[:, None], value, result)
            better = better | settled
        residual = torch.where(better, size, residual)
        converged = converged | settled
        active = active & size.isfinite() & ~settled
        if reducer.all(~active):
            break
        points, gaps = [*points, value][-MEMORY:], [*gaps, gap][-MEMORY:]
        gram = _extend(gram, gaps, group_reducer)
        mixed = torch.where(active[:, None], _mix(points, gram), result)
    return FixedPoint(result.reshape(shape).transpose(0, 1), iterations, residual, converged)


def _extend(gram: Tensor, gaps: list[Tensor], reducer: BatchReducer) -> Tensor:
    """Return the inner products of all gaps, given those of the gaps before the last was added.

    Products and sums are used instead of a matrix product, which would lose digits to TF32.
    """
    newest = reducer.sum(torch.stack([(gaps[-1] * each).sum(1) for each in gaps], 1))  # (groups, memory)
    first = gram.shape[1] + 1 - len(gaps)  # 1 where the oldest gap has been dropped
    rows = torch.cat([gram[:, first:, first:], newest[:, None, :-1]], 1)
    return torch.cat([rows, newest[:, :, None]], 2)


def _mix(points: list[Tensor], gram: Tensor) -> Tensor:
    """Return the combination of the points g(x_i) whose gap is least, given the inner products of their gaps.

    Each gap is scaled to its own size: they shrink so fast that their squares differ by more than float32 can hold.
    """
    size = gram.diagonal(dim1=1, dim2=2).sqrt().clamp(min=torch.finfo(gram.dtype).tiny)  # (groups, memory)
    ridge = 10 * torch.finfo(gram.dtype).eps * torch.eye(len(points), dtype=gram.dtype, device=gram.device)
    cosines = gram / size[:, :, None] / size[:, None, :] + ridge
    weights, _ = torch.linalg.solve_ex(cosines, size[:, -1:] / size)
    alpha = weights / size
    alpha = alpha / alpha.sum(1, keepdim=True)
    mixed = alpha[:, :1] * points[0]
    for i, point in enumerate(points[1:], 1):
        mixed = mixed + alpha[:, i : i + 1] * point
    return mixed


GRADIENT_TOL = 1e-4  # of the backward solve, unless the forward one is tighter: a coarse gradient misleads


@dataclass(frozen=True)
class System:
    """The stage equations Z_i = f(t + c_i h, y + h sum_j a_ij Z_j) of one step, and how they are solved."""

    f: Field
    t: float
    h: float
    tableau: Tableau
    tol: float
    max_iterations: int
    per_image: bool
    backward: BackwardStats
    reducer: BatchReducer
    nan_if_unconverged: bool

    def __call__(self, stages: Tensor, y: Tensor) -> Tensor:
        slopes = list(stages.unbind(0))
        return torch.stack(
            [
                self.f(self.t + node * self.h, combine(y, self.h, row, slopes)).to(y.dtype)
                for row, node in zip(self.tableau.a, self.tableau.c, strict=True)
            ]
        )

    def points(self, stages: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return the times and states of all stages, stacked along the batch."""
        slopes = list(stages.unbind(0))
        states = torch.cat([combine(y, self.h, row, slopes) for row in self.tableau.a])
        times = torch.tensor([self.t + c * self.h for c in self.tableau.c], dtype=y.dtype, device=y.device)
        return align(times.repeat_interleave(y.shape[0]), y), states

    def solve(self, y: Tensor) -> FixedPoint:
        """Solve by fixed-point iteration from the first guess Z_i = f(t, y)."""
        guess = self.f(self.t, y).to(y.dtype)
        return fixed_point(
            lambda stages: self(stages, y),
            guess.expand(self.tableau.stages, *y.shape),
            self.tol,
            self.max_iterations,
            self.per_image,
            reducer=self.reducer,
        )


class _Stages(torch.autograd.Function):
    """Z(y, theta), the solution of Z = F(Z, y, theta); nothing of the iteration is kept.

    Its derivative is dZ = (I - J)^-1 (F_y dy + F_theta dtheta), with the derivatives J, F_y and F_theta of F.

    The gradient is that formula at the Z that was found, whether it converged or not. The formula's own solve, where
    it does not converge, gives the vector of least residual: a diverged one would ruin the weights. With
    `nan_if_unconverged` the gradient is then NaN instead.
    """

    @staticmethod
    def forward(ctx: Any, system: System, y: Tensor, *parameters: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        ctx.system = system
        ctx.autocast = Autocast(y.device.type)
        found = system.solve(y.detach())
        ctx.save_for_backward(found.x, y, *parameters)
        ctx.mark_non_differentiable(found.iterations, found.residual, found.converged)
        return found.x, found.iterations, found.residual, found.converged

    @staticmethod
    @first_derivative_of_solve
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        system: System = ctx.system
        stages, y, *parameters = ctx.saved_tensors
        stages, y = stages.detach().requires_grad_(), y.detach().requires_grad_()
        with torch.enable_grad(), ctx.autocast.restore():
            out = system(stages, y)
        # Scaled to unit size, so that the tolerance is relative to the gradient.
        scale = system.reducer.max(grad.abs().amax()).clamp(min=torch.finfo(grad.dtype).tiny)

        def adjoint(u: Tensor) -> Tensor:
            (product,) = pull_back(out, [stages], u * scale, retain_graph=True)
            return (grad if product is None else grad + product) / scale

        found = fixed_point(
            adjoint,
            grad / scale,
            max(min(system.tol, GRADIENT_TOL), ctx.autocast.eps),
            4 * system.max_iterations,
            system.per_image,
            always_best=True,
            reducer=system.reducer,
        )
        system.backward.evaluations = system.tableau.stages
        system.backward.products = int(found.iterations.max()) + 1  # the last one gives the gradient itself
        system.backward.converged = found.converged
        inputs = [x for x in (y, *parameters) if x.requires_grad]
        grads = pull_back(out, inputs, found.x * scale)
        if system.nan_if_unconverged and not _is_accurate(found):
            grads = tuple(torch.full_like(x, torch.nan) for x in inputs)
        each = iter(grads)
        return (None, *(next(each) if x.requires_grad else None for x in (y, *parameters)))


def _is_accurate(found: FixedPoint) -> bool:
    """Whether a fixed point has converged, or is as exact as its precision allows where the tolerance asks for more."""
    rounding = 100 * torch.finfo(found.x.dtype).eps * found.x.abs().amax()
    return bool((found.converged | (found.residual <= rounding)).all())


def implicit(
    f: Field,
    y: Tensor,
    tableau: Tableau,
    parameters: Sequence[Tensor] = (),
    steps: int = 1,
    tol: float = 1e-6,
    max_iterations: int = 30,
    per_image: bool = False,
    start: float = 0.0,
    end: float = 1.0,
    at_solution: Field | None = None,
    reducer: BatchReducer = LOCAL,
    nan_if_unconverged: bool = False,
) -> Iterator[SolverStep]:
    """Take equal steps; memory is O(stages x state) beside one evaluation of f.

    f must be the same function each time it is called in a step, forward and backward (batch norm that does not
    update its buffers, one dropout mask); `parameters` are the tensors it reads that need a gradient. `at_solution`
    is called once in each step, with the times and states of all solved stages stacked; its result is not used. It is
    there to update running statistics. A step that does not converge goes on with its best iterate; so does the solve
    for its gradient, unless `nan_if_unconverged` makes that NaN.
    """
    y = at_least_float32(y)
    h = step_size(start, end, steps)
    step = SolverStep(start, y, (), evaluations=0)
    for n in range(steps):
        backward = BackwardStats()
        system = System(
            f, start + n * h, h, tableau, tol, max_iterations, per_image, backward, reducer, nan_if_unconverged
        )
        stages, iterations, residual, converged = _Stages.apply(system, y, *parameters)
        if at_solution is not None:
            with torch.no_grad():
                at_solution(*system.points(stages.detach(), y.detach()))
        increments = tuple(h * b * z for b, z in zip(tableau.b, stages.unbind(0), strict=True))
        for increment in increments:
            y = y + increment
        step = SolverStep(
            end - (steps - 1 - n) * h,
            y,
            increments,
            step.evaluations + 1 + tableau.stages * (iterations + (at_solution is not None)),
            step.iterations + iterations,
            residual,
            converged & step.converged,
            backward,
        )
        yield step
