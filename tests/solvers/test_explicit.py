"""Explicit steps, of equal size and adaptive."""

from __future__ import annotations

from math import exp, sin

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torchdiffeq import odeint

from rkcnn.error import InputError
from rkcnn.solvers.explicit import adaptive, explicit
from rkcnn.solvers.methods import TABLEAUS, dopri5, gauss1, radau3, rk4, rk4_38, tsit5
from rkcnn.solvers.tableau import Tableau
from solvers.problems import HEUN_EULER, Counted, exact, field, greatest, last

EXPLICIT = [method for method in TABLEAUS.values() if method.kind == "explicit"]


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


PAIRS = [dopri5, tsit5]
named = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)


@named
@pytest.mark.parametrize("per_image", [False, True])
def test_tight_tolerance_as_torchdiffeq(pair: Tableau, per_image: bool) -> None:
    y = torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    times = torch.tensor([0.0, 1.0], dtype=torch.float64)
    found = last(adaptive(field, y, pair, 1e-11, per_image=per_image))
    assert bool(torch.as_tensor(found.converged).all())
    # not its dopri8: that interpolates to the end with an error of 1e-10
    oracle = odeint(field, y, times, method="dopri5", rtol=1e-12, atol=1e-12)[-1]
    torch.testing.assert_close(found.y, oracle, rtol=0, atol=5e-11)


@given(st.sampled_from(PAIRS), st.floats(1e-11, 1e-2), st.booleans())
def test_error_follows_the_tolerance_and_every_call_counts(pair: Tableau, tol: float, backwards: bool) -> None:
    start, end = (1.0, 0.0) if backwards else (0.0, 1.0)
    f = Counted()
    taken = list(adaptive(f, exact(start), pair, tol, start=start, end=end))
    assert float((taken[-1].y - exact(end)).abs().max()) < 100 * tol
    assert greatest(taken[-1].evaluations) == f.calls
    assert (f.calls - 2) % 6 == 0
    assert f.calls >= 2 + 6 * len(taken)
    assert torch.as_tensor(taken[-1].converged).tolist() == [True]
    times = torch.cat([torch.as_tensor(t).reshape(-1) for t in f.times])
    assert float(times.min()) >= -1e-15
    assert float(times.max()) <= 1 + 1e-15


def test_rejected_steps_count() -> None:
    """f jumps at t = 1/2, which no step can foresee."""
    f = Counted(lambda t, y: torch.where(torch.as_tensor(t) < 0.5, 1.0, -3.0) * y)
    taken = list(adaptive(f, torch.ones(1, 1, dtype=torch.float64), dopri5, 1e-6))
    assert greatest(taken[-1].evaluations) == f.calls > 2 + 6 * len(taken)
    assert float(taken[-1].y) == pytest.approx(exp(-1), abs=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("start", "end"), [(0.0, 1.0), (1.0, 0.0), (0.1, 0.7)])
def test_ends_exactly_at_the_end(start: float, end: float, dtype: torch.dtype) -> None:
    """One state is a clock, the other keeps the steps short."""
    eps = torch.finfo(dtype).eps
    f = Counted(lambda t, y: torch.cat([torch.ones_like(y[:, :1]), y[:, :1] * torch.cos(20 * t * y[:, :1])], 1))
    y = torch.full((1, 2), start, dtype=dtype)
    taken = list(adaptive(f, y, tsit5, 1e-5, start=start, end=end))
    assert len(taken) > 3
    assert float(torch.as_tensor(f.times[-1])) == pytest.approx(end, abs=2 * eps)
    assert float(taken[-1].y[0, 0]) == pytest.approx(end, abs=4 * len(taken) * eps)


def oscillator(t: float | Tensor, y: Tensor) -> Tensor:
    """Each image with its own frequency, which is a state; NaN where that is."""
    return torch.cat([y[:, 1:] * torch.cos(y[:, 1:] * t) + 0.3 * torch.sin(y[:, :1]), 0 * y[:, 1:]], 1)


@named
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_per_image_knows_no_neighbours(pair: Tableau, dtype: torch.dtype) -> None:
    batch = torch.tensor([[0.5, 0.1], [0.4, 40.0], [1.0, 3.0], [0.3, float("nan")]], dtype=dtype)
    together = last(adaptive(oscillator, batch, pair, 1e-4, max_evaluations=300, per_image=True))
    assert torch.as_tensor(together.converged).tolist() == [True, True, True, False]
    for i, image in enumerate(batch):
        alone = last(adaptive(oscillator, image[None], pair, 1e-4, max_evaluations=300, per_image=True))
        torch.testing.assert_close(alone.y[0], together.y[i], rtol=0, atol=1e-6, equal_nan=True)
        for name in ("evaluations", "converged", "residual"):
            torch.testing.assert_close(
                getattr(alone, name)[0], getattr(together, name)[i], rtol=1e-3, atol=1e-6, equal_nan=True
            )
    assert len(set(torch.as_tensor(together.evaluations).tolist())) > 2


def test_every_step_but_that_of_a_spent_budget_moves_an_image() -> None:
    f = Counted(lambda t, y: torch.where(torch.as_tensor(t) < 0.5, 1.0, -y) * y)  # the larger y, the harder
    batch = torch.tensor([[0.1], [1.0], [9.0]], dtype=torch.float64)
    taken = list(adaptive(f, batch, dopri5, 1e-6, per_image=True))
    assert f.calls > 2 + 6 * len(taken)  # some steps are rejected by all that still run
    assert all(bool(step.increments[0].any()) for step in taken)
    ended = [torch.as_tensor(step.converged) for step in taken]
    for before, after, step in zip(ended, ended[1:], taken[1:], strict=False):
        assert bool((after | ~before).all())
        assert not step.increments[0][before].any()


def test_the_whole_batch_takes_the_same_steps() -> None:
    batch = torch.tensor([[0.5, 0.1], [0.4, 40.0]], dtype=torch.float64)
    together = last(adaptive(oscillator, batch, dopri5, 1e-4))
    assert torch.as_tensor(together.evaluations).shape == (1,)
    assert greatest(together.evaluations) > greatest(last(adaptive(oscillator, batch[:1], dopri5, 1e-4)).evaluations)


@named
@pytest.mark.parametrize("per_image", [False, True])
@pytest.mark.parametrize("budget", [8, 13, 14, 50])
def test_budget(pair: Tableau, budget: int, per_image: bool) -> None:
    f = Counted()
    y = exact(torch.tensor([0.0, 0.1]))
    taken = list(adaptive(f, y, pair, 1e-13, budget, per_image))
    assert greatest(taken[-1].evaluations) == f.calls
    assert budget - 6 < f.calls <= budget
    assert not torch.as_tensor(taken[-1].converged).any()
    states = [y, *(step.y for step in taken)]
    for before, step in zip(states, taken, strict=False):
        torch.testing.assert_close(before + step.increments[0], step.y, rtol=0, atol=1e-15)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_is_reported(bad: float) -> None:
    f = Counted(lambda t, y: y * bad)
    step = last(adaptive(f, exact(0), dopri5, 1e-3, max_evaluations=40))
    assert torch.as_tensor(step.converged).tolist() == [False]
    assert f.calls <= 40
    torch.testing.assert_close(step.y, exact(0))


def test_gradient() -> None:
    """y' = y cos t: dy(1)/dy(0) = exp(sin 1)."""
    y = torch.tensor([[0.7]], dtype=torch.float64, requires_grad=True)
    step = last(adaptive(lambda t, y: y * torch.cos(torch.as_tensor(t)), y, tsit5, 1e-10))
    (grad,) = torch.autograd.grad(step.y, y)
    assert float(grad) == pytest.approx(exp(sin(1)), abs=1e-8)


@pytest.mark.parametrize("method", [rk4, radau3], ids=lambda method: method.name)
def test_refuses_a_method_without_a_pair(method: Tableau) -> None:
    with pytest.raises(InputError, match=f"{method.name} can't adapt its step"):
        last(adaptive(field, exact(0), method, 1e-3))


@pytest.mark.parametrize(
    ("tol", "budget", "message"),
    [(0.0, 1000, "tol > 0"), (-1.0, 1000, "tol > 0"), (float("nan"), 1000, "tol > 0"), (0.1, 7, "max_evaluations")],
)
def test_refuses_what_cannot_work(tol: float, budget: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        last(adaptive(field, exact(0), dopri5, tol, budget))


@pytest.mark.parametrize("steps", [0, -1])
def test_refuses_to_take_no_step(steps: int) -> None:
    with pytest.raises(InputError, match=f"`steps={steps}` given"):
        last(explicit(field, exact(0), rk4, steps))


@pytest.mark.parametrize("per_image", [False, True])
def test_a_pair_whose_last_slope_is_not_the_next_first(per_image: bool) -> None:
    f = Counted()
    y = exact(torch.tensor([0.0, 0.0]))
    step = last(adaptive(f, y, HEUN_EULER, 1e-5, 5000, per_image=per_image))
    assert bool(torch.as_tensor(step.converged).all())
    torch.testing.assert_close(step.y, exact(1).expand(2, 2), rtol=0, atol=1e-4)
    assert greatest(step.evaluations) == f.calls
    for budget in range(8, 12):
        spent = Counted()
        step = last(adaptive(spent, y, HEUN_EULER, 1e-5, budget, per_image=per_image))
        assert greatest(step.evaluations) == spent.calls <= budget


def test_a_finer_clock_keeps_the_state_in_its_precision() -> None:
    f = Counted(lambda t, y: -y * torch.as_tensor(t, dtype=y.dtype))
    step = last(adaptive(f, torch.ones(1, 2), dopri5, 1e-4, clock=torch.float64))
    assert (step.y.dtype, torch.as_tensor(step.t).dtype) == (torch.float32, torch.float64)
    assert {torch.as_tensor(t).dtype for t in f.times} == {torch.float64}
    assert f.dtypes == {torch.float32}


def test_on_meta_it_takes_the_least_path() -> None:
    f = Counted(lambda t, y: y + 1)
    step = last(adaptive(f, torch.empty(2, 3, device="meta"), dopri5, 1e-3))
    assert step.y.is_meta
    assert f.calls == greatest(step.evaluations) == 8
