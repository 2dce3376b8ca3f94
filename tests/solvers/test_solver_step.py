"""What all solvers share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from threading import BrokenBarrierError
from typing import Any

import pytest
import torch
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.model.create import create_model
from rkcnn.solvers.adams import adams
from rkcnn.solvers.adjoint import adjoint
from rkcnn.solvers.explicit import adaptive, explicit
from rkcnn.solvers.implicit import implicit
from rkcnn.solvers.methods import dopri5, gauss2, radau3, rk4_38
from rkcnn.solvers.solver_step import (
    LOCAL,
    BackwardStats,
    BatchReducer,
    Field,
    SolveAverages,
    SolverStats,
    SolverStep,
    align,
    at_least_float32,
    first_derivative_only,
)
from solvers.problems import Counted, conv_field, exact, field
from solvers.shares import shared


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_half_precision_is_widened(given: torch.dtype, kept: torch.dtype) -> None:
    assert at_least_float32(torch.ones(2, dtype=given)).dtype == kept


def test_a_state_that_is_wide_enough_is_not_copied() -> None:
    y = torch.ones(2)
    assert at_least_float32(y) is y


@pytest.mark.parametrize("groups", [1, 5])
def test_a_value_for_each_group_broadcasts_against_the_state(groups: int) -> None:
    y = torch.ones(5, 3, 2, 2)
    assert (align(torch.ones(groups), y) * y).shape == y.shape
    assert align(torch.arange(groups), y)[:, 0, 0, 0].tolist() == list(range(groups))


STEPS: dict[str, Callable[[Tensor, float, float], Iterator[SolverStep]]] = {
    "explicit": lambda y, start, end: explicit(field, y, dopri5, 5, start, end),
    "ab": lambda y, start, end: adams(field, y, 5, None, False, start, end),
    "abm": lambda y, start, end: adams(field, y, 5, 0.01, False, start, end),
    "implicit": lambda y, start, end: implicit(field, y, gauss2, steps=5, start=start, end=end),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_has_the_time_of_its_state(name: str) -> None:
    for start, end in ((0.0, 1.0), (0.3, 0.1)):
        times = [step.t for step in STEPS[name](exact(start), start, end)]
        assert times == pytest.approx([start + n * (end - start) / 5 for n in range(1, 6)])
        assert times[-1] == end
        for step in STEPS[name](exact(start), start, end):
            torch.testing.assert_close(step.y, exact(step.t), rtol=0, atol=0.05)


@pytest.mark.parametrize("per_image", [False, True])
def test_an_adaptive_step_has_a_time_for_each_image(per_image: bool) -> None:
    y = exact(torch.zeros(3))
    steps = list(adaptive(field, y, dopri5, 1e-6, per_image=per_image))
    for step in steps:
        assert isinstance(step.t, Tensor)
        assert step.t.shape == (3 if per_image else 1,)
        torch.testing.assert_close(step.y, exact(step.t).expand(3, 2), rtol=0, atol=1e-5)
    assert torch.as_tensor(steps[-1].t).tolist() == [1.0] * (3 if per_image else 1)


def test_is_frozen_and_converged_by_default() -> None:
    step = SolverStep(0.0, torch.ones(1), (), evaluations=0)
    assert step.converged is True
    with pytest.raises(dataclasses.FrozenInstanceError):
        step.iterations = 1  # type: ignore[misc]


Parameters = tuple[Tensor, ...]
SOLVERS: dict[str, Callable[[Field, Tensor, Parameters], Iterable[SolverStep]]] = {
    "explicit": lambda f, y, _: explicit(f, y, rk4_38, 3),
    "ab": lambda f, y, _: adams(f, y, 4),
    "abm": lambda f, y, _: adams(f, y, 4, 0.5),
    "adaptive": lambda f, y, _: adaptive(f, y, dopri5, 0.05),
    "adaptive per image": lambda f, y, _: adaptive(f, y, dopri5, 0.05, per_image=True),
    "implicit": lambda f, y, p: implicit(f, y, radau3, p, steps=2, tol=0.05),
    "adjoint": lambda f, y, p: [adjoint(lambda g, x, start, end: explicit(g, x, rk4_38, 3, start, end), f, y, p)],
}
named = pytest.mark.parametrize("solve", list(SOLVERS.values()), ids=list(SOLVERS))


def run(
    solve: Callable[[Field, Tensor, Parameters], Iterable[SolverStep]], enabled: bool, given: torch.dtype
) -> tuple[list[SolverStep], Counted, list[Tensor], set[torch.dtype]]:
    conv, f = conv_field()
    returned: set[torch.dtype] = set()

    def watched(t: float | Tensor, y: Tensor) -> Tensor:
        slope = f(0.0, y)  # without t, whose float32 tensor would at_least_float32 the slope of an adaptive solver
        returned.add(slope.dtype)
        return slope

    counted = Counted(watched)
    y = torch.randn(3, 4, 5, 5, generator=torch.Generator().manual_seed(1)).to(given)
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        taken = list(solve(counted, y, tuple(conv.parameters())))
    taken[-1].y.square().mean().backward()
    grads = [p.grad for p in conv.parameters() if p.grad is not None]
    return taken, counted, grads, returned


@named
@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16])
def test_solver_arithmetic_stays_float32(
    solve: Callable[[Field, Tensor, Parameters], Iterable[SolverStep]], given: torch.dtype
) -> None:
    taken, counted, grads, returned = run(solve, True, given)
    assert returned == {torch.bfloat16}  # in the backward solve too: it remembers autocast
    assert counted.dtypes == {torch.float32}
    for step in taken:
        assert step.y.dtype == torch.float32
        assert {x.dtype for x in step.increments} == {torch.float32}
        assert step.residual is None or step.residual.dtype == torch.float32
    exactly, _, full, _ = run(solve, False, given)
    torch.testing.assert_close(taken[-1].y, exactly[-1].y, rtol=0, atol=0.03)
    assert len(grads) == len(full) == 2
    for low, high in zip(grads, full, strict=True):
        torch.testing.assert_close(low, high, rtol=0, atol=0.03 * float(high.abs().max()))


def test_the_gradient_solve_asks_for_no_more_than_bf16_can_give() -> None:
    """It asked for 1e-4, never got it, and spent its whole budget of products on every step."""
    conv, f = conv_field(16)
    y, weights = torch.randn(2, 4, 16, 12, 12)
    with torch.autocast("cpu", torch.bfloat16):
        taken = list(implicit(f, y, radau3, tuple(conv.parameters()), steps=2, tol=0.5))
    (taken[-1].y * weights).sum().backward()
    for step in taken:
        assert step.backward is not None
        assert bool(step.backward.converged)
        assert step.backward.products < 15


def test_weights_cast_in_a_solve_still_take_a_gradient_afterwards() -> None:
    """Autocast caches its casts; one made without a graph must not serve the layers that follow."""
    conv, f = conv_field()
    with torch.autocast("cpu", torch.bfloat16):
        *_, step = implicit(f, torch.randn(2, 4, 5, 5), radau3, tuple(conv.parameters()), tol=0.05)
        f(0.0, step.y.detach()).sum().backward()
    assert all(p.grad is not None for p in conv.parameters())


Solve = Callable[[Tensor, BatchReducer], Iterator[SolverStep]]


def image_field(t: float | Tensor, y: Tensor) -> Tensor:
    return torch.sin(3 * y) * y.abs().amax((1, 2, 3), keepdim=True) + t


SOLVES: dict[str, Solve] = {
    "abm": lambda y, reducer: adams(image_field, y, 3, 0.01, reducer=reducer),
    "radau3": lambda y, reducer: implicit(image_field, y, radau3, tol=1e-3, reducer=reducer),
    "dopri5": lambda y, reducer: adaptive(image_field, y, dopri5, 1e-3, reducer=reducer),
}


@pytest.fixture
def batch() -> Tensor:
    """The first images are quiet, the last ones not: shares of it would converge apart."""
    torch.manual_seed(0)
    return torch.randn(5, 2, 3, 3, dtype=torch.float64) * torch.tensor([0.01, 0.01, 1, 1, 1])[:, None, None, None]


@pytest.mark.parametrize("name", SOLVES)
def test_two_shares_take_the_steps_of_the_whole(name: str, batch: Tensor) -> None:
    def last(y: Tensor, reducer: BatchReducer = LOCAL) -> SolverStep:
        return list(SOLVES[name](y, reducer))[-1]

    expected = last(batch)
    parts = shared(batch, 2, last)
    torch.testing.assert_close(torch.cat([part.y for part in parts]), expected.y, rtol=1e-12, atol=1e-12)
    assert expected.residual is not None
    for part in parts:
        assert (part.evaluations, part.converged) == (expected.evaluations, expected.converged)
        assert part.residual is not None
        torch.testing.assert_close(part.residual, expected.residual, rtol=1e-9, atol=0)
    alone = [last(share) for share in (batch[:2], batch[2:])]
    assert alone[0].evaluations != alone[1].evaluations


def test_images_that_converge_by_themselves_wait_for_those_of_other_shares(batch: Tensor) -> None:
    """As synchronised norms inside f need it; each keeps its own result."""

    def last(y: Tensor, reducer: BatchReducer = LOCAL) -> tuple[SolverStep, int]:
        calls = 0

        def counted(t: float | Tensor, state: Tensor) -> Tensor:
            nonlocal calls
            calls += 1
            return image_field(t, state)

        return list(adams(counted, y, 3, 0.01, per_image=True, reducer=reducer))[-1], calls

    expected, calls = last(batch)
    parts = shared(batch, 2, last)
    assert [count for _, count in parts] == [calls, calls]
    assert last(batch[:2])[1] < calls
    assert torch.equal(torch.cat([part.y for part, _ in parts]), expected.y)


def test_a_share_that_decides_alone_leaves_the_other_waiting(batch: Tensor) -> None:
    """What the agreement is for: an f that asks all shares, under solvers that don't."""

    def last(y: Tensor, reducer: BatchReducer) -> SolverStep:
        def coupled(t: float | Tensor, state: Tensor) -> Tensor:
            return image_field(t, state) + 0 * reducer.sum(state.sum())

        return list(adams(coupled, y, 3, 0.01))[-1]

    with pytest.raises(BrokenBarrierError):
        shared(batch, 2, last, patience=2)


def test_sums_and_resets() -> None:
    stats, y = SolverStats(), torch.zeros(1)
    stats.add(SolverStep(1.0, y, (), torch.tensor([4, 8]), converged=torch.tensor([True, False])))
    stats.add(SolverStep(1.0, y, (), torch.tensor([6]), converged=torch.tensor([True])))
    assert stats.read() == SolveAverages(0.25, 6.0, 0.0, 0.0)
    again = SolverStats()
    again.restore(stats.sums())
    assert again.read() == stats.read()
    stats.reset()
    assert stats.read() == SolveAverages(0.0, 0.0, 0.0, 0.0)


def test_a_solve_whose_gradient_failed_did_not_converge() -> None:
    """Its backward pass fills in what it took, after the solve was counted."""
    stats, y = SolverStats(), torch.zeros(1)
    good, bad = BackwardStats(), BackwardStats()
    both = torch.tensor([True, True])
    stats.add(SolverStep(1.0, y, (), 4, converged=both), [good, None, bad])
    stats.add(SolverStep(1.0, y, (), 4), [BackwardStats()])
    assert stats.read().unconverged == 0
    bad.converged = torch.tensor([True, False])
    assert stats.read().unconverged == 0.25
    stats.restore(stats.sums())
    stats.add(SolverStep(1.0, y, (), 4, converged=~both), [bad])  # counts once
    stats.add(SolverStep(1.0, y, (), 4))
    assert stats.read().unconverged == 1.5 / 4


def test_a_network_counts_a_gradient_that_did_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    network = create_model("RKNet-dopri5@k=4,tol=0.001,adjoint=on", channels=1).train()
    stats = network.get_submodule("periods.0").solver_stats
    assert isinstance(stats, SolverStats)
    out = network(torch.rand(2, 1, 28, 28))
    assert stats.read().unconverged == 0
    monkeypatch.setattr("rkcnn.model.solver.MAX_EVALUATIONS", 8)  # one step
    out.square().sum().backward()
    assert stats.read().unconverged == 1
    gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)  # training goes on


def test_a_first_derivative_only() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x.square()

        @staticmethod
        @first_derivative_only("the square", "use x * x")
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return 2 * x * gradient

    x = torch.tensor(3.0, requires_grad=True)
    assert torch.autograd.grad(Square.apply(x), x)[0] == 6
    with pytest.raises(InputError, match="but the square has first derivatives only; use x \\* x"):
        torch.autograd.grad(Square.apply(x), x, create_graph=True)


@pytest.mark.parametrize("name", ["ODENet-abm@k=8", "RKNet-radau3@k=8", "RKNet-dopri5@k=8,tol=0.1"])
def test_a_network_counts_its_solves(name: str) -> None:
    network = create_model(name, channels=1)
    period = network.get_submodule("periods.0")
    calls = []
    network.get_submodule("periods.0.f").register_forward_hook(lambda *_: calls.append(1))
    network.train()(torch.rand(2, 1, 28, 28))
    assert isinstance(period.solver_stats, SolverStats)
    assert period.solver_stats.read().evaluations == len(calls)


@pytest.mark.parametrize("name", ["RKNet-radau3@k=8,r=2", "RKNet-dopri5@k=8,tol=0.1,adjoint=on,norm=bn"])
def test_what_the_gradient_takes_is_counted_apart(name: str) -> None:
    network = create_model(name, channels=1).train()
    period = network.get_submodule("periods.0")
    assert isinstance(period.solver_stats, SolverStats)
    calls: list[int] = []
    network.get_submodule("periods.0.f").register_forward_hook(lambda *_: calls.append(1))
    out = network(torch.rand(2, 1, 28, 28))
    forward = len(calls)
    out.sum().backward()
    took = period.solver_stats.read()
    assert took.evaluations == forward
    assert took.backward_evaluations == len(calls) - forward
    assert took.backward_products > 0
