"""Fixed points x = g(x) by Anderson acceleration, which needs no matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rkcnn.solvers.solver_step import LOCAL, BatchReducer

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
    groups, group_reducer = (shape[0], LOCAL) if per_image else (1, reducer)
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
    for _ in range(max_iterations):
        value = flat(g(mixed.reshape(shape).transpose(0, 1)))
        iterations = iterations + active
        gap = value - mixed
        bound = tol + tol * torch.maximum(value.abs(), mixed.abs())
        unsettled = ~(gap.abs() < bound).all(1)
        size, unsettled = group_reducer.max(torch.stack([gap.abs().amax(1), unsettled.to(x.dtype)]))
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
        mixed = torch.where(active[:, None], _mix(points, gaps, group_reducer), result)
    return FixedPoint(result.reshape(shape).transpose(0, 1), iterations, residual, converged)


def _mix(points: list[Tensor], gaps: list[Tensor], reducer: BatchReducer) -> Tensor:
    """Return the combination of the points g(x_i) whose gap is least.

    Each gap is scaled to its own size: they shrink so fast that their squares differ by more than float32
    can hold. Products and sums are used instead of a matrix product, which would lose digits to TF32.
    """
    gram = reducer.sum(torch.stack([torch.stack([(p * q).sum(1) for q in gaps], 1) for p in gaps], 1))
    size = gram.diagonal(dim1=1, dim2=2).sqrt().clamp(min=torch.finfo(gram.dtype).tiny)  # (groups, memory)
    ridge = 10 * torch.finfo(gram.dtype).eps * torch.eye(len(gaps), dtype=gram.dtype, device=gram.device)
    cosines = gram / size[:, :, None] / size[:, None, :] + ridge
    weights, _ = torch.linalg.solve_ex(cosines, size[:, -1:] / size)
    alpha = weights / size
    alpha = alpha / alpha.sum(1, keepdim=True)
    mixed = torch.zeros_like(points[0])
    for i, point in enumerate(points):
        mixed = mixed + alpha[:, i : i + 1] * point
    return mixed
