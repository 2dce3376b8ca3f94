"""Explicit steps, against torchdiffeq and against the 3/8 rule written out."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchdiffeq import odeint

from rkcnn.error import InputError
from rkcnn.solvers.explicit import explicit
from rkcnn.solvers.methods import METHODS, dopri5, gauss1, radau3, rk4_38
from rkcnn.solvers.tableau import Tableau
from solvers.problems import Counted, exact, field, last

EXPLICIT = [method for method in METHODS.values() if method.kind == "explicit"]


@pytest.mark.parametrize("steps", [1, 3, 10])
def test_rk4_38_step_by_step_as_torchdiffeq(steps: int) -> None:
    y = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(steps))
    times = torch.arange(steps + 1, dtype=torch.float64) * (1 / steps)
    oracle, ours = Counted(), Counted()
    expected = odeint(oracle, y, times, method="rk4", options={"step_size": 1 / steps})
    found = torch.stack([step.y for step in explicit(ours, y, rk4_38, steps)])
    torch.testing.assert_close(found, expected[1:], rtol=0, atol=4e-15)
    assert ours.calls == oracle.calls == 4 * steps


def test_the_three_eighths_rule_written_out() -> None:
    t, h, y = 0.2, 0.7, exact(0.4)
    k1 = field(t, y)
    k2 = field(t + h / 3, y + h * k1 / 3)
    k3 = field(t + 2 * h / 3, y + h * (k2 - k1 / 3))
    k4 = field(t + h, y + h * (k1 - k2 + k3))
    found = last(explicit(field, y, rk4_38, start=t, end=t + h)).y
    torch.testing.assert_close(found, y + h * (k1 + 3 * k2 + 3 * k3 + k4) / 8, rtol=0, atol=2e-15)


@given(st.sampled_from(EXPLICIT), st.integers(1, 6))
def test_counts_evaluations_and_reuses_the_last_slope(method: Tableau, steps: int) -> None:
    f = Counted()
    taken = list(explicit(f, exact(0), method, steps))
    reused = (steps - 1) * method.first_same_as_last
    assert taken[-1].evaluations == f.calls == steps * method.stages - reused
    assert len(taken) == steps


@given(st.sampled_from(EXPLICIT), st.integers(1, 4))
def test_increments_sum_to_the_change(method: Tableau, steps: int) -> None:
    y = exact(0)
    for step in explicit(field, y, method, steps):
        torch.testing.assert_close(y + sum(step.increments), step.y, rtol=0, atol=1e-15)
        y = step.y


def test_backwards_in_time() -> None:
    found = last(explicit(field, exact(1), dopri5, steps=40, start=1.0, end=0.0)).y
    torch.testing.assert_close(found, exact(0), rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", [gauss1, radau3], ids=lambda method: method.name)
def test_refuses_an_implicit_method(method: Tableau) -> None:
    with pytest.raises(InputError, match=f"{method.name} is .*implicit"):
        last(explicit(field, exact(0), method))


def test_differentiates_through_every_evaluation() -> None:
    y = exact(0).requires_grad_()
    assert torch.autograd.gradcheck(lambda start: last(explicit(field, start, dopri5, 2)).y, y)
