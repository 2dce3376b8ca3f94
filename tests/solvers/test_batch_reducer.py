"""Shares of a batch are solved as the batch is, when they are asked about together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import BrokenBarrierError

import pytest
import torch
from torch import Tensor

from rkcnn.solvers.adams import adams
from rkcnn.solvers.adaptive import adaptive
from rkcnn.solvers.batch_reducer import LOCAL, BatchReducer
from rkcnn.solvers.implicit import implicit
from rkcnn.solvers.methods import dopri5, radau3
from rkcnn.solvers.solver_step import SolverStep
from solvers.shares import shared

Solve = Callable[[Tensor, BatchReducer], Iterator[SolverStep]]


def field(t: float | Tensor, y: Tensor) -> Tensor:
    return torch.sin(3 * y) * y.abs().amax((1, 2, 3), keepdim=True) + t


SOLVES: dict[str, Solve] = {
    "abm": lambda y, reducer: adams(field, y, 3, 0.01, reducer=reducer),
    "radau3": lambda y, reducer: implicit(field, y, radau3, tol=1e-3, reducer=reducer),
    "dopri5": lambda y, reducer: adaptive(field, y, dopri5, 1e-3, reducer=reducer),
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
            return field(t, state)

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
            return field(t, state) + 0 * reducer.sum(state.sum())

        return list(adams(coupled, y, 3, 0.01))[-1]

    with pytest.raises(BrokenBarrierError):
        shared(batch, 2, last, patience=2)
