"""A numerical method with its settings, applied to an f made of layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from rkcnn.model.layers import BatchNorm, Frozen
from rkcnn.model.period import PaperCharge
from rkcnn.model.spec import ModelSpec
from rkcnn.solvers.adams import adams
from rkcnn.solvers.adaptive import adaptive
from rkcnn.solvers.adjoint import adjoint
from rkcnn.solvers.batch_reducer import HERE, BatchReducer
from rkcnn.solvers.explicit import explicit
from rkcnn.solvers.implicit import implicit
from rkcnn.solvers.methods import METHODS
from rkcnn.solvers.solver_step import Field, SolverStep

# R = 18 operations a 3/8-rule step; the paper charges an Adams solve two starters of 4 evaluations, nothing
# for f(t_n, y_n), one evaluation for the corrector, and 14 or 16 operations more (SPEC 2 and 4).
ADAMS_CHARGE = {("ab", 4): PaperCharge(8, 2 * 18 + 14), ("abm", 3): PaperCharge(9, 2 * 18 + 16)}
MAX_ITERATIONS = 30  # of an implicit Runge–Kutta step


@dataclass(frozen=True)
class Solver:
    """One unit of time by r steps of a named method, or by as many as its tolerance asks for."""

    method: str
    steps: int
    tol: float | None = None
    per_image: bool = False  # abm: judge convergence by image also where torchdiffeq judges the batch
    adjoint: bool = False
    whole: BatchReducer = HERE  # in training: of whose batch this process may hold a share

    @classmethod
    def of(cls, spec: ModelSpec, index: int) -> Solver:
        assert spec.solver is not None
        return cls(spec.solver, spec.r[index], spec.tol, spec.converge == "image", bool(spec.adjoint))

    @property
    def exact(self) -> bool:
        """Whether the number of evaluations is known beforehand."""
        return self.tol is None

    @property
    def least_evaluations(self) -> int:
        """Of f, for one image; a test compares it with the least path that each solver takes on meta."""
        if self.method in ("ab", "abm"):
            return 2 * 4 + (self.steps - 2) * (1 if self.tol is None else 2)
        tableau = METHODS[self.method]
        if tableau.kind != "explicit":
            return self.steps * (1 + tableau.stages)
        if self.tol is not None:
            return tableau.stages + 1  # the first step's size takes one
        return self.steps * tableau.stages - (self.steps - 1) * tableau.first_same_as_last

    @property
    def paper_charge(self) -> PaperCharge | None:
        if self.method == "rk4_38":
            return PaperCharge(4 * self.steps, 18 * self.steps)
        return ADAMS_CHARGE.get((self.method, self.steps))

    def walk(self, f: nn.Module, y: Tensor) -> Iterator[SolverStep]:
        """The states after each step.

        In evaluation each image converges, or adapts its step, by itself; in training the batch does
        as a whole, over all ranks, since batch norm couples its images. A solve whose steps depend on the data
        keeps its dropout masks, or their noise would pass for error; an implicit or adjoint one holds its batch
        norms as well, and touches their running statistics once, at the solution.
        """
        alone = self.per_image or (not f.training and self.method != "abm")
        touches = f.training and not y.is_meta and any(isinstance(module, BatchNorm) for module in f.modules())
        touch = f if touches else None
        parameters = tuple(f.parameters())
        whole = self.whole if f.training and not y.is_meta else HERE
        tableau = METHODS.get(self.method)
        if tableau is not None and tableau.kind != "explicit":
            assert self.tol is not None
            yield from implicit(
                Frozen(f),
                y,
                tableau,
                parameters,
                self.steps,
                self.tol,
                MAX_ITERATIONS,
                alone,
                at_solution=touch,
                whole=whole,
            )
        elif self.adjoint and torch.is_grad_enabled():
            moment = adjoint(partial(self._march, alone, whole), Frozen(f), y, parameters)
            if touch is not None:
                with torch.no_grad():
                    touch(1.0, moment.y)
                moment = replace(moment, evaluations=moment.evaluations + 1)
            yield moment
        else:
            yield from self._march(alone, whole, f if self.exact else Frozen(f, norms=False), y, 0.0, 1.0)

    def _march(
        self, alone: bool, whole: BatchReducer, f: Field, y: Tensor, start: float, end: float
    ) -> Iterator[SolverStep]:
        if self.method in ("ab", "abm"):
            return adams(f, y, self.steps, self.tol, alone, start, end, whole)
        if self.tol is not None:
            return adaptive(f, y, METHODS[self.method], self.tol, per_image=alone, start=start, end=end, whole=whole)
        return explicit(f, y, METHODS[self.method], self.steps, start, end)
