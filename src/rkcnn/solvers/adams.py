"""Adams–Bashforth (`ab`) and Adams–Bashforth–Moulton (`abm`) steps.

They are those of torchdiffeq with max_order 5 (`ab`) and 4 (`abm`). Its default is 12, where the order goes on to grow:
with that they agree up to 4 steps of `ab` and 3 of `abm`.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.solvers.explicit import combine, slopes_of
from rkcnn.solvers.methods import ADAMS_STARTERS, BASHFORTH, MOULTON, rk4_38
from rkcnn.solvers.solver_step import LOCAL, BatchReducer, Field, SolverStep, align, at_least_float32, judge_by

MAX_ITERATIONS = 4  # of the corrector in a network: "the maximum number of iterations is four" (the paper, section 4.1)


def adams(
    f: Field,
    y: Tensor,
    steps: int,
    tol: float | None = None,
    per_image: bool = False,
    start: float = 0.0,
    end: float = 1.0,
    reducer: BatchReducer = LOCAL,
    max_iterations: int = MAX_ITERATIONS,
) -> Iterator[SolverStep]:
    """Take equal steps of `ab`, or with a tolerance of `abm`; differentiable through every evaluation.

    Each step first evaluates f(t_n, y_n). The first two steps use the 3/8 rule. After them `ab` predicts
    y + h sum_j beta_j f_{n-j}, with order 3 once and with order 4 from then on. `abm` keeps three slopes: AB3
    predicts, AM4 corrects d <- h (9/24 f(t + h, y + d) + rest) until |d - d_old| < tol + tol max(|d|, |d_old|)
    in every element, at most `max_iterations` times; without convergence the last d is used. As in torchdiffeq the
    whole batch is judged together, so that an image's result depends on the others; with `per_image` each image is
    judged by itself.
    """
    if steps < ADAMS_STARTERS + 1:
        raise InputError(
            f"Adams methods need at least {ADAMS_STARTERS + 1} steps, {steps} given: the first two only start them"
        )
    y = at_least_float32(y)
    h = (end - start) / steps
    history: list[Tensor] = []  # newest first
    step = SolverStep(start, y, (), evaluations=0)
    for n in range(steps):
        t, after = start + n * h, end - (steps - 1 - n) * h
        history.insert(0, f(t, y).to(y.dtype))
        del history[4 if tol is None else 3 :]
        iterations: int | Tensor = 0
        residual, converged = None, step.converged
        if n < ADAMS_STARTERS:
            weights, slopes = rk4_38.b, slopes_of(f, t, y, h, rk4_38, first=history[0])
        else:
            weights, slopes = BASHFORTH[len(history)], history
        change = combine(torch.zeros_like(y), h, weights, slopes)
        if n >= ADAMS_STARTERS and tol is not None:
            change, iterations, residual, settled = _correct(
                f, t + h, y, h, change, history, tol, max_iterations, per_image, reducer
            )
            converged = settled & converged
        evaluations = step.evaluations + (rk4_38.stages if n < ADAMS_STARTERS else 1) + iterations
        y = y + change
        step = SolverStep(after, y, (change,), evaluations, step.iterations + iterations, residual, converged)
        yield step


def _correct(
    f: Field,
    t: float,
    y: Tensor,
    h: float,
    change: Tensor,
    history: list[Tensor],
    tol: float,
    max_iterations: int,
    per_image: bool,
    reducer: BatchReducer,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Correct by AM4 with functional iteration; return the change, iterations, last residual and convergence."""
    rest = combine(torch.zeros_like(y), h, MOULTON[1:], history)
    groups, group_reducer = judge_by(y.shape[0], per_image, reducer)
    if y.is_meta:  # counting costs: the fewest iterations that any data can take
        ones = torch.ones(groups, dtype=torch.long)
        return combine(rest, h, MOULTON[:1], [f(t, y + change)]), ones, torch.zeros(groups), ones.bool()
    converged = torch.zeros(groups, dtype=torch.bool, device=y.device)
    iterations = torch.zeros(groups, dtype=torch.long, device=y.device)
    residual = torch.zeros(groups, dtype=y.dtype, device=y.device)
    for _ in range(max_iterations):
        iterations = iterations + ~converged
        new = combine(rest, h, MOULTON[:1], [f(t, y + change).to(y.dtype)])
        with torch.no_grad():
            gap = (new - change).abs().reshape(groups, -1)
            bound = tol + tol * torch.maximum(new.abs(), change.abs()).reshape(groups, -1)
            size, unsettled = group_reducer.max(torch.stack([gap.amax(1), (~(gap < bound).all(1)).to(y.dtype)]))
            residual = torch.where(converged, residual, size)
        change = torch.where(align(converged, y), change, new) if converged.any() else new
        converged = converged | (unsettled == 0)
        if reducer.all(converged):
            break
    return change, iterations, residual, converged
