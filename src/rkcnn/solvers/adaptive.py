"""Embedded pairs with a step size that follows the error."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.solvers.batch_reducer import HERE, BatchReducer
from rkcnn.solvers.explicit import combine, slopes_of
from rkcnn.solvers.solver_step import Field, SolverStep, spread, widen
from rkcnn.solvers.tableau import Tableau

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0  # Hairer, Nørsett, Wanner I, section II.4


def adaptive(
    f: Field,
    y: Tensor,
    tableau: Tableau,
    tol: float,
    budget: int = 1000,
    per_image: bool = False,
    start: float = 0.0,
    end: float = 1.0,
    whole: BatchReducer = HERE,
) -> Iterator[SolverStep]:
    """Steps whose error estimate h sum_i (b_i - embedded_i) z_i stays below tol + tol |y| (root mean square).

    The whole batch takes the same steps, or each image its own with `per_image`, so that its result does not
    depend on its neighbours. Rejected steps count as evaluations. Ends at `end` exactly, or, when
    `budget` evaluations are spent, early with converged = False. Differentiable through the accepted steps;
    the step sizes are constants of the gradient.
    """
    if tableau.embedded is None or not tableau.first_same_as_last:
        raise InputError(
            f"{tableau.name} can't adapt its step: that takes embedded weights and a first stage that is "
            "the last one's, as dopri5 and tsit5 have"
        )
    if not tol > 0:
        raise InputError(f"an adaptive solver needs tol > 0, {tol} given")
    if budget <= tableau.stages:
        raise InputError(
            f"{tableau.name} needs a budget of {tableau.stages + 1} evaluations or more to try one step, {budget} given"
        )
    y = widen(y)
    groups, group = (y.shape[0], HERE) if per_image else (1, whole)
    order = min(tableau.order, tableau.embedded_order)
    difference = [b - e for b, e in zip(tableau.b, tableau.embedded, strict=True)]
    t = torch.full((groups,), start, dtype=y.dtype, device=y.device)
    direction = 1.0 if end > start else -1.0
    first = f(spread(t, y), y).to(y.dtype)
    h = _first_step(f, spread(t, y), y, first, order, tol, groups, direction, abs(end - start), group)
    evaluations = torch.full((groups,), 2, dtype=torch.long, device=y.device)
    done = torch.zeros(groups, dtype=torch.bool, device=y.device)
    residual = torch.zeros(groups, dtype=y.dtype, device=y.device)
    while True:
        last = direction * (end - t) <= h.abs()
        h = torch.where(last, end - t, h)
        slopes = slopes_of(f, spread(t, y), y, spread(h, y), tableau, first)
        new = combine(y, spread(h, y), tableau.b, slopes)
        evaluations = evaluations + (tableau.stages - 1) * ~done
        if y.is_meta:  # a cost: the least that any data can take
            yield SolverStep(new, (new - y,), tableau.stages + 1)
            return
        with torch.no_grad():
            error = combine(torch.zeros_like(y), spread(h, y), difference, slopes)
            ratio = _size(error / (tol + tol * torch.maximum(y.abs(), new.abs())), groups, group)
            accept = (ratio <= 1) & ~done
            residual = torch.where(done, residual, ratio)
            factor = (SAFETY * ratio ** (-1 / (order + 1))).nan_to_num(SHRINK).clamp(SHRINK, GROW)
        if accept.any():
            before = y
            y = new if accept.all() else torch.where(spread(accept, y), new, y)
            t = torch.where(accept, t + h, t)
            done = done | (accept & last)
            if not done.all():
                first = slopes[-1] if accept.all() else torch.where(spread(accept, y), slopes[-1], first)
            yield SolverStep(y, (y - before,), evaluations, residual=residual, converged=done)
        if done.all():
            return
        h = torch.where(last & accept, h, h * factor)
        if int(evaluations.max()) + tableau.stages - 1 > budget:
            if not accept.any():  # what the rejected steps took
                yield SolverStep(y, (torch.zeros_like(y),), evaluations, residual=residual, converged=done)
            return


def _size(x: Tensor, groups: int, group: BatchReducer) -> Tensor:
    """Root mean square over each group."""
    square, _ = group.mean(x.reshape(groups, -1).square().mean(1), x.numel() / groups)
    return square.sqrt()


@torch.no_grad()
def _first_step(
    f: Field,
    t: Tensor,
    y: Tensor,
    slope: Tensor,
    order: int,
    tol: float,
    groups: int,
    sign: float,
    span: float,
    group: BatchReducer,
) -> Tensor:
    """Hairer, Nørsett, Wanner I, section II.4: one evaluation for an estimate of the curvature."""
    scale = tol + tol * y.abs()
    d0, d1 = _size(y / scale, groups, group), _size(slope / scale, groups, group)
    guess = torch.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1).clamp(max=span)
    ahead = f(t + sign * spread(guess, y), y + sign * spread(guess, y) * slope).to(y.dtype)
    d2 = _size((ahead - slope) / scale, groups, group) / guess
    top = torch.maximum(d1, d2)
    careful = torch.where(top <= 1e-15, (1e-3 * guess).clamp(min=1e-6), (0.01 / top) ** (1 / (order + 1)))
    return sign * torch.minimum(100 * guess, careful).nan_to_num(1e-6).clamp(max=span)
