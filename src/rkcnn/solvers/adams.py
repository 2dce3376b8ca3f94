"""Adams–Bashforth and Adams–Bashforth–Moulton with a 3/8-rule starter, as torchdiffeq runs them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.solvers.batch_reducer import HERE, BatchReducer
from rkcnn.solvers.explicit import combine, slopes_of
from rkcnn.solvers.methods import ADAMS_STARTERS, BASHFORTH, MOULTON, rk4_38
from rkcnn.solvers.solver_step import Field, SolverStep, spread, widen

MAX_ITERATIONS = 4  # "the maximum number of iterations is four" (the paper, section 4.1)


def adams(
    f: Field,
    y: Tensor,
    steps: int,
    tol: float | None = None,
    per_image: bool = False,
    start: float = 0.0,
    end: float = 1.0,
    whole: BatchReducer = HERE,
) -> Iterator[SolverStep]:
    """`ab` without a tolerance, `abm` with one; differentiable through every evaluation.

    A step first evaluates f(t_n, y_n). Two steps of the 3/8 rule start it. Then `ab` predicts
    y + h sum_j beta_j f_{n-j} of order 3 once and of order 4 afterwards. `abm` keeps three slopes: AB3
    predicts, AM4 corrects d <- h (9/24 f(t + h, y + d) + rest) until
    |d - d_old| < tol + tol max(|d|, |d_old|) in every element: of the whole batch as torchdiffeq has it, so
    that an image's result depends on its neighbours, or `per_image`.
    """
    if steps < ADAMS_STARTERS + 1:
        raise InputError(
            f"Adams methods need r >= {ADAMS_STARTERS + 1} steps, {steps} given: fewer never leave the starter"
        )
    y = widen(y)
    h = (end - start) / steps
    history: list[Tensor] = []  # newest first
    moment = SolverStep(y, (), evaluations=0)
    for n in range(steps):
        t = start + n * h
        history.insert(0, f(t, y).to(y.dtype))
        del history[4 if tol is None else 3 :]
        if n < ADAMS_STARTERS:
            slopes = slopes_of(f, t, y, h, rk4_38, first=history[0])
            change = combine(torch.zeros_like(y), h, rk4_38.b, slopes)
            moment = SolverStep(y + change, (change,), moment.evaluations + rk4_38.stages)
        else:
            change = combine(torch.zeros_like(y), h, BASHFORTH[len(history)], history)
            if tol is None:
                moment = SolverStep(y + change, (change,), moment.evaluations + 1)
            else:
                change, iterations, residual, converged = _correct(
                    f, t + h, y, h, change, history, tol, per_image, whole
                )
                moment = SolverStep(
                    y + change,
                    (change,),
                    moment.evaluations + 1 + iterations,
                    moment.iterations + iterations,
                    residual,
                    converged & moment.converged,
                )
        y = moment.y
        yield moment


def _correct(
    f: Field,
    t: float,
    y: Tensor,
    h: float,
    change: Tensor,
    history: list[Tensor],
    tol: float,
    per_image: bool,
    whole: BatchReducer,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """AM4 by functional iteration: the change, iterations, the last residual, converged or not."""
    rest = combine(torch.zeros_like(y), h, MOULTON[1:], history)
    groups, group = (y.shape[0], HERE) if per_image else (1, whole)
    if y.is_meta:  # a cost: the least that any data can take
        ones = torch.ones(groups, dtype=torch.long)
        return combine(rest, h, MOULTON[:1], [f(t, y + change)]), ones, torch.zeros(groups), ones.bool()
    converged = torch.zeros(groups, dtype=torch.bool, device=y.device)
    iterations = torch.zeros(groups, dtype=torch.long, device=y.device)
    residual = torch.zeros(groups, dtype=y.dtype, device=y.device)
    for _ in range(MAX_ITERATIONS):
        iterations = iterations + ~converged
        new = combine(rest, h, MOULTON[:1], [f(t, y + change).to(y.dtype)])
        with torch.no_grad():
            gap = (new - change).abs().reshape(groups, -1)
            bound = tol + tol * torch.maximum(new.abs(), change.abs()).reshape(groups, -1)
            size, unsettled = group.most(torch.stack([gap.amax(1), (~(gap < bound).all(1)).to(y.dtype)]))
            residual = torch.where(converged, residual, size)
        change = torch.where(spread(converged, y), change, new) if converged.any() else new
        converged = converged | (unsettled == 0)
        if whole.every(converged):
            break
    return change, iterations, residual, converged
