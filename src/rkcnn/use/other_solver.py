"""A trained network whose f is solved by another numerical method than the one it was trained with."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real

import torch
from torch import Tensor, nn

from rkcnn.error import InputError, did_you_mean
from rkcnn.model.network import Network
from rkcnn.model.solver import Solver
from rkcnn.model.steps.ode import OdePeriod
from rkcnn.solvers.methods import ADAMS, ADAMS_STARTERS, EMBEDDED, IMPLICIT, METHOD_NAMES
from rkcnn.solvers.solver_step import SolverStep

DEFAULT_TOL = 1e-3
MOST_STEPS = 1000  # as in a network's name


@dataclass(frozen=True)
class SolverChoice:
    """How to solve f instead: a method, and its number of equal steps in a period or its tolerance.

    Without `method` it is the one that the network was trained with; without `steps`, so many as in training, and
    dopri5 and tsit5 then choose their steps by `tol`.
    """

    method: str | None = None
    steps: int | None = None
    tol: float | None = None

    def __post_init__(self) -> None:
        if self.method is not None and not (isinstance(self.method, str) and self.method in METHOD_NAMES):
            hint = did_you_mean(str(self.method), METHOD_NAMES)
            raise InputError(f"no method {self.method!r}{hint}; methods are {', '.join(METHOD_NAMES)}")
        if self.steps is not None and not (_is_number(self.steps, Integral) and 1 <= self.steps <= MOST_STEPS):
            raise InputError(f"steps={self.steps!r} given; give a whole number from 1 to {MOST_STEPS}")
        if self.tol is not None and not (_is_number(self.tol, Real) and 0 < self.tol < float("inf")):
            raise InputError(f"tol={self.tol!r} given; a tolerance is a positive number, as in tol=1e-3")


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


@dataclass
class SolveCounts:
    """Sums over images: how many were solved, by how many evaluations of f, and how many did not converge."""

    images: int = 0
    evaluations: float = 0.0
    unconverged: float = 0.0


@dataclass(frozen=True)
class CountedSolver(Solver):
    """A solver that counts what its solves take."""

    counts: SolveCounts = field(default_factory=SolveCounts)

    def walk(self, f: nn.Module, y: Tensor) -> Iterator[SolverStep]:
        step = None
        for step in super().walk(f, y):
            yield step
        if step is not None:
            self.counts.images += len(y)
            self.counts.evaluations += len(y) * float(torch.as_tensor(step.evaluations).double().mean())
            self.counts.unconverged += len(y) * float((~torch.as_tensor(step.converged)).double().mean())


def solve_by(network: nn.Module, choice: SolverChoice) -> Network:
    """Return a copy of the network, with the same weights, in which every period is solved as `choice` says.

    The solver of each period is a `CountedSolver`. Raises InputError if the network has no f, or if the choice fits no
    method.
    """
    periods = find_ode_periods(network)
    if not isinstance(network, Network) or not periods:
        raise InputError(
            f"{getattr(network, 'name', 'this network')} has no f that another method could solve, because each of its "
            "steps has weights of its own; the families RKNN, RKNet, ODENet, SONODE and ANODE have one"
        )
    other = copy.deepcopy(network)
    for period in find_ode_periods(other):
        trained, chosen = period.solver, _choose(period.solver, choice)
        same = (chosen.method, chosen.steps, chosen.tol) == (trained.method, trained.steps, trained.tol)
        if trained.numbered and not same:
            raise InputError(
                f"{describe_solver(chosen)} given; the batch norms of {network.name} have statistics for each "
                f"evaluation of f by {describe_solver(trained)}, and for no others; only a network with "
                "statistics=shared can be solved by another method or in other steps"
            )
        period.solver = chosen
    return other


def find_ode_periods(network: nn.Module) -> list[OdePeriod]:
    """Return the periods of a network that solve an ODE; none for a network that has no f."""
    return [module for module in network.modules() if isinstance(module, OdePeriod)]


def describe_solver(solver: Solver) -> str:
    """Return a solver in words: "rk4_38, 1 step", "dopri5, tol 0.001" or "radau3, 2 steps, tol 0.5"."""
    adaptive = solver.method in EMBEDDED and solver.tol is not None
    steps = "" if adaptive else f", {solver.steps} step{'s' * (solver.steps != 1)}"
    return f"{solver.method}{steps}" + ("" if solver.tol is None else f", tol {solver.tol:g}")


def _choose(trained: Solver, choice: SolverChoice) -> CountedSolver:
    """Return the chosen solver; what the choice leaves open is as in training, or the default of its method."""
    if choice == SolverChoice():
        return _count(trained)
    method = choice.method or trained.method
    adapts = method in EMBEDDED and choice.steps is None
    if method in EMBEDDED and choice.steps is not None and choice.tol is not None:
        raise InputError(f"steps={choice.steps} and tol={choice.tol:g} given with {method}; give one of the two")
    if choice.tol is not None and not (adapts or method in IMPLICIT or method == "abm"):
        raise InputError(
            f"tol={choice.tol:g} given with {method}, which takes equal steps; give steps=8, or a method with a "
            f"tolerance: {', '.join((*EMBEDDED, *IMPLICIT, 'abm'))}"
        )
    least = ADAMS_STARTERS + 1 if method in ADAMS else 1
    steps = choice.steps or max(trained.steps, least)
    if steps < least:
        raise InputError(f"steps={steps} given with {method}, which needs {least}: its first {least - 1} only start it")
    tol: float | None = None
    if adapts or method in IMPLICIT or method == "abm":
        known = trained.tol if method == trained.method else None
        tol = choice.tol or known or DEFAULT_TOL
    return _count(replace(trained, method=method, steps=1 if adapts else steps, tol=tol, per_image=True))


def _count(solver: Solver) -> CountedSolver:
    return CountedSolver(**{each.name: getattr(solver, each.name) for each in fields(Solver)})
