"""The continuous gradient: it meets backpropagation as the steps get finer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from rkcnn.solvers.adjoint import Integrator, adjoint
from rkcnn.solvers.explicit import adaptive, explicit
from rkcnn.solvers.implicit import implicit
from rkcnn.solvers.methods import gauss2, heun, rk4_38, tsit5
from rkcnn.solvers.solver_step import Field, SolverStep
from rkcnn.solvers.tableau import Tableau
from solvers.problems import Counted, last, slopes


def dense(weight: Tensor, bias: Tensor) -> Field:
    return lambda t, y: torch.tanh(y @ weight + t * bias)


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(5)
    y, weight, bias = (torch.randn(*shape, dtype=torch.float64) for shape in ((3, 4), (4, 4), (4,)))
    return y.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()


def fixed(method: Tableau, steps: int) -> Integrator:
    def solver(f: Field, y: Tensor, start: float, end: float) -> Iterator[SolverStep]:
        if method.kind == "explicit":
            return explicit(f, y, method, steps, start, end)
        return implicit(f, y, method, (), steps, 1e-12, 100, start=start, end=end)

    return solver


def adapting(per_image: bool) -> Integrator:
    def solver(f: Field, y: Tensor, start: float, end: float) -> Iterator[SolverStep]:
        return adaptive(f, y, tsit5, 1e-9, per_image=per_image, start=start, end=end)

    return solver


def gradients(end: Tensor, of: tuple[Tensor, ...]) -> list[Tensor]:
    return list(torch.autograd.grad(end.square().sum(), of))


def difference(solver: Integrator) -> float:
    """Of the adjoint gradient from that of backpropagation through 64 steps of the 3/8 rule."""
    y, weight, bias = inputs()
    f = dense(weight, bias)
    continuous = gradients(adjoint(solver, f, y, (weight, bias)).y, (y, weight, bias))
    direct = gradients(last(explicit(f, y, rk4_38, 64)).y, (y, weight, bias))
    return max(float((a - b).abs().max()) for a, b in zip(continuous, direct, strict=True))


@pytest.mark.parametrize("method", [heun, rk4_38, gauss2], ids=lambda method: method.name)
def test_approaches_backpropagation_with_the_order_of_the_method(method: Tableau) -> None:
    errors = [difference(fixed(method, steps)) for steps in (4, 8, 16)]
    assert slopes(errors) == pytest.approx([method.order] * 2, abs=0.7)


@pytest.mark.parametrize("per_image", [False, True])
def test_by_adaptive_steps(per_image: bool) -> None:
    assert difference(adapting(per_image)) < 1e-6


def test_a_time_of_an_adaptive_solver_broadcasts_against_the_state() -> None:
    """Backwards too, where the solver itself sees one long row."""
    f = Counted(lambda t, y: y.square() * t)
    y = torch.full((5,), 0.2, dtype=torch.float64, requires_grad=True)
    adjoint(adapting(False), f, y, ()).y.sum().backward()
    assert {torch.as_tensor(t).dim() for t in f.times} == {1}
    torch.testing.assert_close(y.grad, (1 - y.detach() / 2) ** -2, rtol=0, atol=1e-7)  # y(1) = y / (1 - y / 2)


def test_gives_what_the_solver_gives() -> None:
    y, weight, bias = inputs()
    f = Counted(dense(weight, bias))
    step = adjoint(fixed(rk4_38, 3), f, y, (weight, bias))
    assert step.evaluations == f.calls == 12
    torch.testing.assert_close(step.y, last(explicit(f.f, y, rk4_38, 3)).y, rtol=0, atol=0)
    torch.testing.assert_close(y + step.increments[0], step.y)


def test_reports_what_did_not_converge() -> None:
    def solver(f: Field, y: Tensor, start: float, end: float) -> Iterator[SolverStep]:
        return adaptive(f, y, tsit5, 1e-12, max_evaluations=20, start=start, end=end)

    y, weight, bias = inputs()
    assert not bool(adjoint(solver, dense(weight, bias), y, (weight, bias)).converged)


@pytest.mark.parametrize("strict", [False, True])
def test_a_backward_solve_that_does_not_converge_says_so(strict: bool) -> None:
    """Backwards exp(-40 t) grows, and 400 evaluations are too few."""

    def solver(f: Field, y: Tensor, start: float, end: float) -> Iterator[SolverStep]:
        return adaptive(f, y, tsit5, 1e-6, max_evaluations=400, start=start, end=end)

    y = torch.ones(1, 2, dtype=torch.float64, requires_grad=True)
    step = adjoint(solver, lambda t, y: -40 * (y - torch.cos(3 * torch.as_tensor(t))), y, (), nan_if_unconverged=strict)
    assert bool(step.converged)
    (gradient,) = torch.autograd.grad(step.y.sum(), y)
    assert step.backward is not None
    assert not bool(step.backward.converged)
    assert bool(gradient.isnan().all()) is strict


@pytest.mark.parametrize("wants", [(True, False, False), (False, True, False), (False, False, True)])
def test_only_what_wants_a_gradient_gets_one(wants: tuple[bool, ...]) -> None:
    y, weight, bias = (x.requires_grad_(want) for x, want in zip(inputs(), wants, strict=True))
    adjoint(fixed(rk4_38, 2), dense(weight, bias), y, (weight, bias)).y.sum().backward()
    assert tuple(x.grad is not None for x in (y, weight, bias)) == wants


def test_a_parameter_that_f_does_not_read_gets_zero() -> None:
    y, weight, bias = inputs()
    idle = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    adjoint(fixed(rk4_38, 2), dense(weight, bias), y, (weight, idle)).y.sum().backward()
    assert idle.grad is not None
    assert idle.grad.tolist() == [0, 0, 0]


def test_keeps_no_step_for_backward() -> None:
    saved: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        saved.append(tensor.numel())
        return tensor

    sizes = []
    for steps in (2, 20):
        y, weight, bias = inputs()
        saved.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            adjoint(fixed(rk4_38, steps), dense(weight, bias), y, (weight, bias))
        sizes.append(sum(saved))
    assert sizes[0] == sizes[1] == 12 + 16 + 4
