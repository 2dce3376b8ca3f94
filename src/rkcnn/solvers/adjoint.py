"""Gradients by integrating backwards in time: the adjoint method (Chen et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rkcnn.solvers.solver_step import (
    Autocast,
    BackwardStats,
    Field,
    SolverStep,
    Time,
    align,
    at_least_float32,
    first_derivative_of_solve,
    pull_back,
)

Integrator = Callable[[Field, Tensor, float, float], Iterator[SolverStep]]
"""integrator(f, y, start, end): a solver with all other settings filled in."""


class _Adjoint(torch.autograd.Function):
    """y(end); backwards a' = -a df/dy and g' = -a df/dtheta, together with y' = f, from end to start."""

    @staticmethod
    def forward(
        ctx: Any,
        integrator: Integrator,
        f: Field,
        span: tuple[float, float],
        last: list[SolverStep],
        stats: BackwardStats,
        nan_if_unconverged: bool,
        y: Tensor,
        *parameters: Tensor,
    ) -> Tensor:
        for step in integrator(f, y.detach(), *span):
            last[:] = [step]
        ctx.integrator, ctx.f, ctx.span, ctx.stats = integrator, f, span, stats
        ctx.nan_if_unconverged = nan_if_unconverged
        ctx.autocast = Autocast(y.device.type)
        ctx.save_for_backward(last[0].y, *parameters)
        return last[0].y

    @staticmethod
    @first_derivative_of_solve
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        end, *given = ctx.saved_tensors
        parameters = [p for p in given if p.requires_grad]
        sizes = [end.numel(), end.numel(), *(p.numel() for p in parameters)]

        def augmented(t: Time, state: Tensor) -> Tensor:
            y, a, *_ = state.reshape(-1).split(sizes)
            y = y.reshape(end.shape).detach().requires_grad_()
            time = align(t, y) if isinstance(t, Tensor) else t
            with torch.enable_grad(), ctx.autocast.restore():
                slope = ctx.f(time, y).to(y.dtype)
            found = pull_back(slope, (y, *parameters), -a.reshape(end.shape))
            parts = [torch.zeros_like(x) if g is None else g for g, x in zip(found, (y, *parameters), strict=True)]
            return torch.cat([part.reshape(-1) for part in (slope.detach(), *parts)]).reshape(1, -1)

        state = torch.cat([end.reshape(-1), grad.reshape(-1), end.new_zeros(sum(sizes[2:]))]).reshape(1, -1)
        with torch.no_grad():
            for step in ctx.integrator(augmented, state, *reversed(ctx.span)):
                state = step.y
        ctx.stats.evaluations = ctx.stats.products = int(torch.as_tensor(step.evaluations).max())
        ctx.stats.converged = step.converged
        if ctx.nan_if_unconverged and not torch.as_tensor(step.converged).all():
            state = torch.full_like(state, torch.nan)
        _, a, *grads = state.reshape(-1).split(sizes)
        found = iter(grads)
        back = (next(found).reshape(p.shape) if p.requires_grad else None for p in given)
        return (*[None] * 6, a.reshape(end.shape), *back)


def adjoint(
    integrator: Integrator,
    f: Field,
    y: Tensor,
    parameters: Sequence[Tensor],
    start: float = 0.0,
    end: float = 1.0,
    nan_if_unconverged: bool = False,
) -> SolverStep:
    """Solve from start to end, and return the last step; memory does not grow with the number of steps.

    The gradient is that of the continuous problem, not of the steps taken: it is only as exact as the steps are fine.
    f must be the same function each time it is called, as in `implicit`; `parameters` are the tensors it reads that
    need a gradient. A backward solve that does not converge says so in the step's `backward`. Its gradient is that of
    the state which it reached, or NaN with `nan_if_unconverged`.
    """
    y = at_least_float32(y)
    last: list[SolverStep] = []
    stats = BackwardStats()
    y_end = _Adjoint.apply(integrator, f, (start, end), last, stats, nan_if_unconverged, y, *parameters)
    return replace(last[0], y=y_end, increments=(y_end - y,), backward=stats)
