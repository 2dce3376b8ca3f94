"""A numerical method with its settings, applied to an f that is made of layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.layers import Frozen
from rkcnn.model.period import PaperSolveCost
from rkcnn.model.spec import ModelSpec
from rkcnn.solvers.adjoint import adjoint
from rkcnn.solvers.implicit import implicit
from rkcnn.solvers.methods import ADAMS, IMPLICIT, TABLEAUS
from rkcnn.solvers.solve import take_steps
from rkcnn.solvers.solver_step import LOCAL, BatchReducer, Field, SolverStep, Time, at_least_float32

# R = 18 operations a 3/8-rule step; the paper charges an Adams solve two starters of 4 evaluations, nothing
# for f(t_n, y_n), one evaluation for the corrector, and 14 or 16 operations more (docs/spec.md, 2 and 4).
ADAMS_CHARGE = {("ab", 4): PaperSolveCost(8, 2 * 18 + 14), ("abm", 3): PaperSolveCost(9, 2 * 18 + 16)}
MAX_ITERATIONS = 30  # of an implicit Runge–Kutta step
MAX_EVALUATIONS = 1000  # of f in an adaptive solve


@dataclass(frozen=True)
class Solver:
    """Solves over one unit of time, by r steps of a named method or by as many as its tolerance asks for."""

    method: str
    steps: int
    tol: float | None = None
    per_image: bool = False  # abm: judge convergence by image also where torchdiffeq judges the batch
    adjoint: bool = False
    numbered: bool = False  # f is told which evaluation of the solve it is, from 0 on: f(t, y, evaluation)
    reducer: BatchReducer = LOCAL  # in training: over the whole batch, of which this process may hold a share

    @classmethod
    def of(cls, spec: ModelSpec, index: int) -> Solver:
        """Return the solver of a network's period, counted from 0."""
        assert spec.solver is not None
        return cls(
            spec.solver,
            spec.r[index],
            spec.tol,
            spec.converge == "image",
            bool(spec.adjoint),
            numbered=spec.statistics == "each",
        )

    @property
    def exact(self) -> bool:
        """Whether the number of evaluations is known beforehand."""
        return self.tol is None

    @property
    def freezes_norms(self) -> bool:
        """Whether batch norms are frozen while it solves, so that f is the same function at every evaluation."""
        return self.method in IMPLICIT or self.adjoint

    @property
    def least_evaluations(self) -> int:
        """The fewest evaluations of f that any image can take; a test compares it with what runs on meta."""
        if self.method in ADAMS:
            return 2 * 4 + (self.steps - 2) * (1 if self.tol is None else 2)
        tableau = TABLEAUS[self.method]
        if tableau.kind != "explicit":
            return self.steps * (1 + tableau.stages)
        if self.tol is not None:
            return tableau.stages + 1  # the choice of the first step's size takes one
        return self.steps * tableau.stages - (self.steps - 1) * tableau.first_same_as_last

    @property
    def paper_solve_cost(self) -> PaperSolveCost | None:
        """What the paper's FLOPs count for a solve; None where the paper has no such solver."""
        if self.method == "rk4_38":
            return PaperSolveCost(4 * self.steps, 18 * self.steps)
        return ADAMS_CHARGE.get((self.method, self.steps))

    def walk(self, f: nn.Module, y: Tensor) -> Iterator[SolverStep]:
        """Yield every step.

        In evaluation each image converges, or adapts its step, by itself; in training the batch does so as a whole,
        over all processes, since batch norm couples its images. A solve whose steps depend on the data keeps its
        dropout masks, or their noise would count as error; an implicit or adjoint solve freezes its batch norms as
        well, and updates their running statistics once, at the solution. Without images there is nothing that could
        converge: the one step then leaves the state as it is.
        """
        if not self.exact and not len(y):
            empty = at_least_float32(y)
            yield SolverStep(1.0, empty, (torch.zeros_like(empty),), evaluations=0)
            return
        training = f.training and not y.is_meta
        per_image = self.per_image or (not f.training and self.method != "abm")
        reducer = self.reducer if training else LOCAL
        updates_norms = training and any(isinstance(module, BatchNorm) for module in f.modules())
        parameters = tuple(f.parameters())

        def integrate(f: Field, y: Tensor, start: float, end: float) -> Iterator[SolverStep]:
            return take_steps(
                f,
                y,
                self.method,
                self.steps,
                self.tol,
                start=start,
                end=end,
                per_image=per_image,
                reducer=reducer,
                max_evaluations=MAX_EVALUATIONS,
            )

        if self.method in IMPLICIT:
            assert self.tol is not None
            yield from implicit(
                Frozen(f),
                y,
                TABLEAUS[self.method],
                parameters,
                self.steps,
                self.tol,
                MAX_ITERATIONS,
                per_image,
                at_solution=f if updates_norms else None,
                reducer=reducer,
            )
        elif self.adjoint and torch.is_grad_enabled():
            step = adjoint(integrate, Frozen(f), y, parameters)
            if updates_norms:
                with torch.no_grad():
                    f(1.0, step.y)
                step = replace(step, evaluations=step.evaluations + 1)
            yield step
        else:
            numbered_f = NumberedEvaluations(f) if self.numbered else f
            yield from integrate(numbered_f if self.exact else Frozen(f, norms=False), y, 0.0, 1.0)


class NumberedEvaluations:
    """f(t, y) of an f(t, y, evaluation), for one solve."""

    def __init__(self, f: nn.Module) -> None:
        self.f, self.evaluation = f, 0

    def __call__(self, t: Time, y: Tensor) -> Tensor:
        self.evaluation += 1
        return self.f(t, y, self.evaluation - 1)
