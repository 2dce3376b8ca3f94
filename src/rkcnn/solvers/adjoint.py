"""Gradients by integrating backwards in time (Chen et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rkcnn.solvers.autocast import Autocast
from rkcnn.solvers.solver_step import Backward, Field, SolverStep, spread, widen

Solver = Callable[[Field, Tensor, float, float], Iterator[SolverStep]]
"""solver(f, y, start, end): any method of this room with its settings filled in."""


class _Adjoint(torch.autograd.Function):
    """z(1) and, backwards, a' = -a df/dy, g' = -a df/dtheta together with y' = f from 1 to 0."""

    @staticmethod
    def forward(
        ctx: Any, solver: Solver, f: Field, kept: list[SolverStep], took: Backward, y: Tensor, *parameters: Tensor
    ) -> Tensor:
        for moment in solver(f, y, 0.0, 1.0):
            kept[:] = [moment]
        ctx.solver, ctx.f, ctx.took, ctx.autocast = solver, f, took, Autocast(y.device.type)
        ctx.save_for_backward(kept[0].y, *parameters)
        return kept[0].y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        end, *given = ctx.saved_tensors
        parameters = [p for p in given if p.requires_grad]
        sizes = [end.numel(), end.numel(), *(p.numel() for p in parameters)]

        def augmented(t: float | Tensor, state: Tensor) -> Tensor:
            y, a, *_ = state.reshape(-1).split(sizes)
            y = y.reshape(end.shape).detach().requires_grad_()
            time = spread(t, y) if isinstance(t, Tensor) else t
            with torch.enable_grad(), ctx.autocast.again():
                slope = ctx.f(time, y).to(y.dtype)
            found = torch.autograd.grad(slope, (y, *parameters), -a.reshape(end.shape), allow_unused=True)
            parts = [torch.zeros_like(x) if g is None else g for g, x in zip(found, (y, *parameters), strict=True)]
            return torch.cat([part.reshape(-1) for part in (slope.detach(), *parts)]).reshape(1, -1)

        state = torch.cat([end.reshape(-1), grad.reshape(-1), end.new_zeros(sum(sizes[2:]))]).reshape(1, -1)
        with torch.no_grad():
            for moment in ctx.solver(augmented, state, 1.0, 0.0):
                state = moment.y
        ctx.took.evaluations = ctx.took.products = int(torch.as_tensor(moment.evaluations).max())
        ctx.took.converged = moment.converged
        _, a, *grads = state.reshape(-1).split(sizes)
        found = iter(grads)
        back = (next(found).reshape(p.shape) if p.requires_grad else None for p in given)
        return (None, None, None, None, a.reshape(end.shape), *back)


def adjoint(solver: Solver, f: Field, y: Tensor, parameters: Sequence[Tensor]) -> SolverStep:
    """The solution at t = 1 with a memory that does not grow with the number of steps.

    The gradient is that of the continuous problem, not of the steps taken: exact only as the steps are fine.
    f must be the same function each time it is called, as in `implicit`.
    """
    start = widen(y)
    kept: list[SolverStep] = []
    took = Backward()
    end = _Adjoint.apply(solver, f, kept, took, start, *parameters)
    return replace(kept[0], y=end, increments=(end - start,), backward=took)
