"""Explicit Runge–Kutta steps: of equal size, or of a size that follows the estimated error of an embedded pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.solvers.solver_step import (
    LOCAL,
    BatchReducer,
    Field,
    SolverStep,
    Time,
    align,
    at_least_float32,
    judge_by,
    step_size,
)
from rkcnn.solvers.tableau import Tableau


def combine(y: Tensor, h: Time, weights: Sequence[float], slopes: Sequence[Tensor]) -> Tensor:
    """Return y + h sum_i w_i z_i, skipping the terms whose weight is zero."""
    for weight, slope in zip(weights, slopes, strict=False):
        if weight != 0:
            y = y + (h * weight) * slope
    return y


def slopes_of(f: Field, t: Time, y: Tensor, h: Time, tableau: Tableau, first: Tensor | None) -> list[Tensor]:
    """Return all z_i = f(t + c_i h, y + h sum_{j<i} a_ij z_j); `first` is z_1 where it is known already."""
    slopes = [f(t, y).to(y.dtype) if first is None else first]
    for row, node in zip(tableau.a[1:], tableau.c[1:], strict=True):
        slopes.append(f(t + node * h, combine(y, h, row, slopes)).to(y.dtype))
    return slopes


def explicit(
    f: Field, y: Tensor, tableau: Tableau, steps: int = 1, start: float = 0.0, end: float = 1.0
) -> Iterator[SolverStep]:
    """Take equal steps from start to end; each yields its state and its increments e_i = h b_i z_i, if b_i is not 0."""
    if tableau.kind != "explicit":
        raise InputError(f"{tableau.name} is {tableau.kind}: its stages must be solved for, by `implicit`")
    y = at_least_float32(y)
    h = step_size(start, end, steps)
    first = None
    evaluations = 0
    for n in range(steps):
        slopes = slopes_of(f, start + n * h, y, h, tableau, first)
        increments = tuple(h * b * z for b, z in zip(tableau.b, slopes, strict=True) if b != 0)
        for increment in increments:
            y = y + increment
        evaluations += tableau.stages - (first is not None)
        yield SolverStep(end - (steps - 1 - n) * h, y, increments, evaluations)
        first = slopes[-1] if tableau.first_same_as_last else None


SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0  # Hairer, Nørsett, Wanner I, section II.4


def adaptive(
    f: Field,
    y: Tensor,
    tableau: Tableau,
    tol: float,
    max_evaluations: int = 1000,
    per_image: bool = False,
    start: float = 0.0,
    end: float = 1.0,
    reducer: BatchReducer = LOCAL,
    clock: torch.dtype | None = None,
) -> Iterator[SolverStep]:
    """Take steps whose error estimate h sum_i (b_i - embedded_i) z_i stays below tol (1 + max(|y|, |y_next|)).

    It is the root mean square over all elements that does. The whole batch takes the same steps; with `per_image` each
    image takes its own, so that its result does not depend on the others. Rejected steps count as evaluations. The
    solve ends exactly at `end`, or before it with converged = False when another step would exceed `max_evaluations`.
    Gradients flow through the accepted steps; step sizes are constants to them. `clock` is the precision of the time,
    that of y unless given: over a unit of time float32 is enough.
    """
    if tableau.embedded is None or not tableau.adapts:
        raise InputError(
            f"{tableau.name} can't adapt its step: that takes explicit stages and embedded weights, as dopri5 and "
            "tsit5 have"
        )
    if not tol > 0:
        raise InputError(f"an adaptive solver needs tol > 0, {tol} given")
    if max_evaluations <= tableau.stages:
        raise InputError(
            f"max_evaluations={max_evaluations} given; {tableau.name} needs {tableau.stages + 1} to try one step"
        )
    y = at_least_float32(y)
    groups, group_reducer = judge_by(y.shape[0], per_image, reducer)
    order = min(tableau.order, tableau.embedded_order)
    difference = [b - e for b, e in zip(tableau.b, tableau.embedded, strict=True)]
    t = torch.full((groups,), start, dtype=clock or y.dtype, device=y.device)
    direction = 1.0 if end > start else -1.0
    first = f(align(t, y), y).to(y.dtype)
    h = _first_step(f, align(t, y), y, first, order, tol, groups, direction, abs(end - start), group_reducer)
    evaluations = torch.full((groups,), 2, dtype=torch.long, device=y.device)
    done = torch.zeros(groups, dtype=torch.bool, device=y.device)
    residual = torch.zeros(groups, dtype=y.dtype, device=y.device)
    while True:
        last = direction * (end - t) <= h.abs()
        h = torch.where(last, end - t, h).to(y.dtype)
        slopes = slopes_of(f, align(t, y), y, align(h, y), tableau, first)
        new = combine(y, align(h, y), tableau.b, slopes)
        evaluations = evaluations + (tableau.stages - 1) * ~done
        if y.is_meta:  # counting costs: the fewest steps that any data can take
            yield SolverStep(end, new, (new - y,), tableau.stages + 1)
            return
        with torch.no_grad():
            error = combine(torch.zeros_like(y), align(h, y), difference, slopes)
            ratio = _size(error / (tol + tol * torch.maximum(y.abs(), new.abs())), groups, group_reducer)
            accept = (ratio <= 1) & ~done
            residual = torch.where(done, residual, ratio)
            factor = (SAFETY * ratio ** (-1 / (order + 1))).nan_to_num(SHRINK).clamp(SHRINK, GROW)
        if accept.any():
            before = y
            y = new if accept.all() else torch.where(align(accept, y), new, y)
            t = torch.where(accept, torch.where(last, end, t + h), t)
            done = done | (accept & last)
            if tableau.first_same_as_last and not done.all():
                first = slopes[-1] if accept.all() else torch.where(align(accept, y), slopes[-1], first)
            yield SolverStep(t, y, (y - before,), evaluations, residual=residual, converged=done)
        if done.all():
            return
        h = torch.where(last & accept, h, h * factor)
        if int(evaluations.max()) + tableau.stages - tableau.first_same_as_last > max_evaluations:
            if not accept.any():  # so that the evaluations of the rejected steps are counted
                yield SolverStep(t, y, (torch.zeros_like(y),), evaluations, residual=residual, converged=done)
            return
        if not tableau.first_same_as_last and accept.any():
            first = torch.where(align(accept, y), f(align(t, y), y).to(y.dtype), first)
            evaluations = evaluations + (accept & ~done)


def _size(x: Tensor, groups: int, reducer: BatchReducer) -> Tensor:
    """Return the root mean square over each group."""
    square, _ = reducer.mean(x.reshape(groups, -1).square().mean(1), x.numel() / groups)
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
    reducer: BatchReducer,
) -> Tensor:
    """Choose the size of the first step, with one evaluation (Hairer, Nørsett, Wanner I, section II.4)."""
    scale = tol + tol * y.abs()
    d0, d1 = _size(y / scale, groups, reducer), _size(slope / scale, groups, reducer)
    guess = torch.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1).clamp(max=span)
    ahead = f(t + sign * align(guess, y), y + sign * align(guess, y) * slope).to(y.dtype)
    d2 = _size((ahead - slope) / scale, groups, reducer) / guess
    top = torch.maximum(d1, d2)
    careful = torch.where(top <= 1e-15, (1e-3 * guess).clamp(min=1e-6), (0.01 / top) ** (1 / (order + 1)))
    return sign * torch.minimum(100 * guess, careful).nan_to_num(1e-6).clamp(max=span)
