"""Fixed points without matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

MEMORY = 5  # past iterates mixed; 3 to 8 make little difference (Walker & Ni 2011)


@dataclass(frozen=True)
class FixedPoint:
    """x with g(x) = x up to `residual`; each figure one for the batch, or one for each image."""

    x: Tensor
    iterations: Tensor
    residual: Tensor
    converged: Tensor


def fixed_point(
    g: Callable[[Tensor], Tensor], x: Tensor, tol: float, max_iterations: int, per_image: bool = False
) -> FixedPoint:
    """Iterate x <- sum_i alpha_i g(x_i), alpha minimising |sum_i alpha_i (g(x_i) - x_i)| with sum 1.

    x is (stages, images, ...). Stops when |g(x) - x| < tol + tol max(|g(x)|, |x|) in every element of a
    group, and keeps that group's g(x) from then on; a group is the whole batch or, `per_image`, one image,
    whose result then does not depend on its neighbours. Memory: 2 x MEMORY copies of x.
    """
    shape = x.transpose(0, 1).shape
    groups = shape[0] if per_image else 1

    def flat(value: Tensor) -> Tensor:  # (groups, unknowns)
        return value.transpose(0, 1).reshape(groups, -1)

    result = flat(x)
    converged = torch.zeros(groups, dtype=torch.bool, device=x.device)
    iterations = torch.zeros(groups, dtype=torch.long, device=x.device)
    residual = torch.zeros(groups, dtype=x.dtype, device=x.device)
    points: list[Tensor] = []
    gaps: list[Tensor] = []
    mixed = result
    for _ in range(max_iterations):
        value = flat(g(mixed.reshape(shape).transpose(0, 1)))
        iterations = iterations + ~converged
        if x.is_meta:  # a cost: the least that any data can take
            result = value
            break
        gap = value - mixed
        size = gap.abs().amax(1)
        alive = size.isfinite() & ~converged
        if not alive.any():
            break
        residual = torch.where(converged, residual, size)
        result = torch.where(alive[:, None], value, result)
        bound = tol + tol * torch.maximum(value.abs(), mixed.abs())
        converged = converged | (alive & (gap.abs() < bound).all(1))
        if converged.all():
            break
        points, gaps = [*points, value][-MEMORY:], [*gaps, gap][-MEMORY:]
        mixed = _mix(points, gaps)
    return FixedPoint(result.reshape(shape).transpose(0, 1), iterations, residual, converged)


def _mix(points: list[Tensor], gaps: list[Tensor]) -> Tensor:
    """The combination of g(x_i) whose gap is least; in full precision whatever autocast says."""
    if len(points) == 1:
        return points[0]
    with torch.autocast(points[0].device.type, enabled=False):
        r = torch.stack(gaps, 1)  # (groups, memory, unknowns)
        gram = r @ r.transpose(1, 2)
        scale = gram.diagonal(dim1=1, dim2=2).sum(1).clamp(min=torch.finfo(gram.dtype).tiny)[:, None, None]
        ridge = 10 * torch.finfo(gram.dtype).eps * torch.eye(len(gaps), dtype=gram.dtype, device=gram.device)
        ones = torch.ones(gram.shape[0], len(gaps), 1, dtype=gram.dtype, device=gram.device)
        alpha, _ = torch.linalg.solve_ex(gram / scale + ridge, ones)
        alpha = alpha / alpha.sum(1, keepdim=True)
        return (alpha * torch.stack(points, 1)).sum(1)
