"""How batch norm, dropout, convergence and counting behave inside a solve (docs/spec.md, 4, last bullets)."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.layers import Layers
from rkcnn.model.solver import Solver
from rkcnn.model.spec import parse
from rkcnn.model.steps.ode import OdeFunction
from rkcnn.solvers.solver_step import SolverStep


def last(solver: Solver, f: OdeFunction, y: Tensor) -> SolverStep:
    return list(solver.walk(f, y))[-1]


@pytest.fixture
def y() -> Tensor:
    return torch.randn(4, 6, 5, 5, generator=torch.Generator().manual_seed(0))


def function(kind: str, dropout: float = 0.0) -> OdeFunction:
    torch.manual_seed(1)
    return OdeFunction(6, Layers(kind, dropout))


def buffers(f: OdeFunction) -> list[Tensor]:
    return [b.clone() for b in f.buffers()]


@pytest.mark.parametrize("solver", [Solver("radau3", 1, tol=1e-3), Solver("ab", 4, adjoint=True)])
def test_buffers_are_touched_once_at_the_solution_and_not_in_the_backward(solver: Solver, y: Tensor) -> None:
    f = function("bn").train()
    out = last(solver, f, y.requires_grad_()).y
    norms = [norm for norm in f.modules() if isinstance(norm, BatchNorm)]
    assert {int(norm.num_batches_tracked) for norm in norms if norm.num_batches_tracked is not None} == {1}
    before = buffers(f)
    out.sum().backward()
    assert all(torch.equal(a, b) for a, b in zip(before, f.buffers(), strict=True))


def test_the_touch_is_at_the_solution(y: Tensor) -> None:
    """One update of the first norm by the statistics of the solved stages, all stacked."""
    f = function("bn").train()
    step = last(Solver("gauss1", 1, tol=1e-6), f, y)
    stage = y + 0.5 * step.increments[0]  # gauss1: Y = y + h/2 z, z = increment / h
    assert f.norm1.running_mean is not None
    torch.testing.assert_close(f.norm1.running_mean, 0.01 * stage.mean((0, 2, 3)))


def test_evaluation_touches_nothing(y: Tensor) -> None:
    f = function("bn").eval()
    before = buffers(f)
    last(Solver("radau3", 1, tol=1e-3), f, y)
    assert all(torch.equal(a, b) for a, b in zip(before, f.buffers(), strict=True))


def test_one_dropout_mask_a_solve_forward_and_backward(y: Tensor) -> None:
    """With a mask that changed between iterations the solve could not converge, nor its gradient agree."""
    f = function("gn", dropout=0.3).double().train()
    start = y.double().requires_grad_()
    solver = Solver("gauss2", 1, tol=1e-10)
    torch.manual_seed(7)
    step = last(solver, f, start)
    assert torch.as_tensor(step.converged).all()
    (gradient,) = torch.autograd.grad(step.y.square().sum(), start)
    direction = torch.randn(start.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    values = []
    for sign in (1, -1):
        torch.manual_seed(7)  # the same masks
        values.append(last(solver, f, start.detach() + sign * 1e-6 * direction).y.square().sum())
    slope = (values[0] - values[1]) / 2e-6
    torch.testing.assert_close((gradient * direction).sum(), slope.detach(), rtol=1e-5, atol=1e-5)


def test_the_gradient_differentiates_through_batch_statistics(y: Tensor) -> None:
    f = function("bn").double().train()
    start = y.double().requires_grad_()
    solver = Solver("radau2", 1, tol=1e-10)
    out = last(solver, f, start).y
    (gradient,) = torch.autograd.grad(out.square().sum(), start)
    direction = torch.randn(start.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    plus, minus = (last(solver, f, start.detach() + s * 1e-6 * direction).y.square().sum() for s in (1, -1))
    torch.testing.assert_close((gradient * direction).sum(), ((plus - minus) / 2e-6).detach(), rtol=1e-5, atol=1e-5)


def test_convergence_is_judged_by_image_in_evaluation_and_by_batch_in_training(y: Tensor) -> None:
    f = function("gn")
    for name in ("RKNet-radau3@k=6", "RKNet-dopri5@k=6,tol=0.01", "ODENet-abm@k=6,converge=image"):
        solver = Solver.of(parse(name), 0)
        assert torch.as_tensor(last(solver, f.eval(), y).converged).shape == (4,), name
    for name in ("RKNet-radau3@k=6", "RKNet-dopri5@k=6,tol=0.01", "ODENet-abm@k=6"):
        solver = Solver.of(parse(name), 0)
        assert torch.as_tensor(last(solver, f.train(), y).converged).shape == (1,), name
    # the paper's row keeps torchdiffeq's whole-batch rule in evaluation too
    assert torch.as_tensor(last(Solver.of(parse("ODENet-abm@k=6"), 0), f.eval(), y).converged).shape == (1,)


@pytest.mark.parametrize(
    "solver",
    [
        Solver("rk4_38", 2),
        Solver("dopri5", 3),
        Solver("ab", 5),
        Solver("abm", 4, tol=0.5),
        Solver("radau3", 2, tol=0.5),
        Solver("tsit5", 1, tol=0.01),
    ],
)
def test_the_least_evaluations_are_the_least_path(solver: Solver) -> None:
    f, calls = function("gn").to("meta"), []
    f.register_forward_hook(lambda *_: calls.append(1))
    step = last(solver, f, torch.empty(2, 6, 5, 5, device="meta"))
    assert len(calls) == solver.least_evaluations
    assert step.y.shape == (2, 6, 5, 5)


def test_solves_stay_in_float32_under_autocast(y: Tensor) -> None:
    f = function("gn").train()
    for solver in (Solver("radau3", 1, tol=0.5), Solver("abm", 3, tol=0.5), Solver("rk4_38", 1)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert last(solver, f, y.bfloat16()).y.dtype == torch.float32


@pytest.mark.parametrize("name", ["RKNN-tsit5@k=6,tol=0.001", "RKNet-dopri5@k=6,tol=0.001", "ODENet-abm@k=6,tol=0.01"])
def test_dropout_does_not_pass_for_error(name: str, y: Tensor) -> None:
    """A mask of its own for each evaluation would keep these from ever converging."""
    torch.manual_seed(0)
    solver = Solver.of(parse(name), 0)
    plain, dropped = (last(solver, function("gn", dropout).train(), y) for dropout in (0.0, 0.3))
    assert torch.as_tensor(dropped.converged).all()
    assert int(torch.as_tensor(dropped.evaluations).max()) < 2 * int(torch.as_tensor(plain.evaluations).max())


@pytest.mark.parametrize("solver", [Solver("gauss1", 1, tol=1e-6), Solver("rk4_38", 2, adjoint=True)])
def test_second_derivatives_are_refused(solver: Solver, y: Tensor) -> None:
    """Their formulas are of first derivatives: better none than a wrong one."""
    f = function("gn").train()
    out = last(solver, f, y.requires_grad_()).y
    for loss in (out.square().sum(), out.sum()):  # the gradient of a sum is a constant, which torch lets pass
        with pytest.raises(InputError, match="`create_graph=True` given"):
            torch.autograd.grad(loss, y, create_graph=True, retain_graph=True)
