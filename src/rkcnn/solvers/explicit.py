"""Explicit Runge–Kutta steps of equal size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from rkcnn.error import InputError
from rkcnn.solvers.solver_step import Field, SolverStep, Time, at_least_float32
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
    """Take equal steps from start to end; each yields its state and its increments e_i = h b_i z_i."""
    if tableau.kind != "explicit":
        raise InputError(f"{tableau.name} is {tableau.kind}: its stages must be solved for, by `implicit`")
    y = at_least_float32(y)
    h = (end - start) / steps
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
