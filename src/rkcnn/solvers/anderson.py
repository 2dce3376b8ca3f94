"""Fixed points without matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rkcnn.solvers.batch_reducer import HERE, BatchReducer

MEMORY = 5  # past iterates mixed; 3 to 8 make little difference (Walker & Ni 2011)


@dataclass(frozen=True)
class FixedPoint:
    """x with g(x) = x up to `residual`; each figure one for the batch, or one for each image."""

    x: Tensor
    iterations: Tensor
    residual: Tensor
    converged: Tensor


def fixed_point(
    g: Callable[[Tensor], Tensor],
    x: Tensor,
    tol: float,
    max_iterations: int,
    per_image: bool = False,
    best: bool = False,
    whole: BatchReducer = HERE,
) -> FixedPoint:
    """Iterate x <- sum_i alpha_i g(x_i), alpha minimising |sum_i alpha_i (g(x_i) - x_i)| with sum 1.

    x is (stages, images, ...). Stops when |g(x) - x| < tol + tol max(|g(x)|, |x|) in every element of a
    group, and keeps that group's g(x) from then on; a group is the whole batch or, `per_image`, one image,
    whose result then does not depend on its neighbours. A group that is no longer finite stops as well, at
    its last finite g(x). Not converged: the last g(x) or, if `best`, the x whose residual was least.
    Memory: 2 x MEMORY copies of x.
    """
    shape = x.transpose(0, 1).shape
    groups, group = (shape[0], HERE) if per_image else (1, whole)
    if x.is_meta:  # a cost: the least that any data can take
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
        size, unsettled = group.most(torch.stack([gap.abs().amax(1), unsettled.to(x.dtype)]))
        settled = active & (unsettled == 0)
        finite = size.isfinite()
        take = active & (size < residual if best else finite)
        result = torch.where(take[:, None], mixed if best else value, result)
        residual = torch.where(take if best else active, size, residual)
        converged = converged | settled
        active = active & finite & ~settled
        if whole.every(~active):
            break
        points, gaps = [*points, value][-MEMORY:], [*gaps, gap][-MEMORY:]
        mixed = torch.where(active[:, None], _mix(points, gaps, group), result)
    return FixedPoint(result.reshape(shape).transpose(0, 1), iterations, residual, converged)


def _mix(points: list[Tensor], gaps: list[Tensor], group: BatchReducer) -> Tensor:
    """The combination of g(x_i) whose gap is least.

    Each gap is scaled to its own size: they shrink so fast that their squares differ by more than float32
    can hold. Products and sums, not a matrix product, which TF32 would spoil.
    """
    gram = group.sum(torch.stack([torch.stack([(p * q).sum(1) for q in gaps], 1) for p in gaps], 1))
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
