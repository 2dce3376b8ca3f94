"""Both Adams methods step by step against torchdiffeq, with its counts of evaluations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torchdiffeq import odeint

from rkcnn.error import InputError
from rkcnn.solvers.adams import MAX_ITERATIONS, adams
from solvers.problems import Counted, exact, field, greatest, last, slopes

TOLERANCES = [0.9, 0.5, 0.03, 1e-3, 1e-14]
by_tolerance = pytest.mark.parametrize("tol", [None, *TOLERANCES])


def oracle(f: Counted, y: Tensor, steps: int, tol: float | None) -> Tensor:
    options: dict[str, Any] = {"step_size": 1 / steps, "max_order": 5 if tol is None else 4}
    return odeint(
        f,
        y,
        torch.arange(steps + 1, dtype=y.dtype) * (1 / steps),
        method="explicit_adams" if tol is None else "implicit_adams",
        rtol=tol or 1e-7,
        atol=tol or 1e-9,
        options=options,
    )


@by_tolerance
@pytest.mark.parametrize("steps", [3, 4, 9])
@pytest.mark.filterwarnings("ignore:Functional iteration did not converge")
def test_step_by_step_as_torchdiffeq(steps: int, tol: float | None) -> None:
    y = 3 * torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(steps))
    theirs, ours = Counted(), Counted()
    expected = oracle(theirs, y, steps, tol)
    taken = list(adams(ours, y, steps, tol))
    torch.testing.assert_close(torch.stack([m.y for m in taken]), expected[1:], rtol=0, atol=8e-15)
    assert ours.calls == theirs.calls == greatest(taken[-1].evaluations)


@pytest.mark.parametrize(("steps", "evaluations"), [(3, 9), (4, 10)])
def test_explicit_evaluations(steps: int, evaluations: int) -> None:
    f = Counted()
    assert last(adams(f, exact(0), steps)).evaluations == f.calls == evaluations


@given(st.floats(1e-16, 10), st.integers(3, 5))
def test_implicit_evaluations(tol: float, steps: int) -> None:
    """N = 3: 10 to 13; N = 4: 12 or more. A corrector stops as soon as it may, at the latest after four."""
    f = Counted()
    step = last(adams(f, exact(0), steps, tol))
    corrected = steps - 2
    assert greatest(step.evaluations) == f.calls
    assert 8 + 2 * corrected <= f.calls <= 8 + (1 + MAX_ITERATIONS) * corrected
    assert f.calls == 8 + corrected + greatest(step.iterations)


@pytest.mark.parametrize("tol", [None, 1e-13], ids=["ab", "abm"])
def test_measured_order(tol: float | None) -> None:
    errors = [float((last(adams(field, exact(0), n, tol)).y - exact(1)).abs().max()) for n in (32, 64, 128)]
    assert slopes(errors) == pytest.approx([4, 4], abs=0.3)


def test_says_when_the_corrector_does_not_converge() -> None:
    y = exact(0)
    tight, loose = (last(adams(lambda t, y: -20 * y, y, 3, tol)) for tol in (1e-9, 1e9))
    assert not bool(tight.converged)
    assert bool(loose.converged)
    assert greatest(tight.iterations) == MAX_ITERATIONS
    assert tight.residual is not None
    assert float(tight.residual) > 1e-3


def test_one_step_that_failed_is_not_forgotten() -> None:
    """Only the first corrector fails; the later ones converge, `converged` stays False."""

    def f(t: float | Tensor, y: Tensor) -> Tensor:
        return -50 * y if float(torch.as_tensor(t)) < 0.5 else 0 * y

    taken = list(adams(f, exact(0), 8, 1e-6))
    assert [bool(m.converged) for m in taken[:2]] == [True, True]
    assert not any(bool(m.converged) for m in taken[2:])


def test_nan_is_reported() -> None:
    step = last(adams(lambda t, y: y * float("nan"), exact(0), 3, 0.5))
    assert not bool(step.converged)


@pytest.mark.parametrize("per_image", [False, True])
def test_neighbours(per_image: bool) -> None:
    """torchdiffeq's whole-batch rule lets a hard image change an easy one; per_image does not."""

    def f(t: float | Tensor, y: Tensor) -> Tensor:
        return torch.cat([y[:, 1:] * torch.sin(3 * y[:, :1] + t), 0 * y[:, 1:]], 1)  # the rate is a state

    batch = torch.tensor([[0.5, 0.1], [0.4, 6.0], [1.0, 1.5]], dtype=torch.float64)
    together = last(adams(f, batch, 4, 0.01, per_image))
    alone = [last(adams(f, image[None], 4, 0.01, per_image)) for image in batch]
    same = [bool((one.y[0] == y).all()) for one, y in zip(alone, together.y, strict=True)]
    assert all(same) is per_image
    if per_image:
        for name in ("evaluations", "iterations", "residual", "converged"):
            assert getattr(together, name).tolist() == [getattr(one, name).item() for one in alone]
        assert len(set(torch.as_tensor(together.evaluations).tolist())) > 1


@pytest.mark.parametrize("steps", [-1, 0, 2])
def test_refuses_to_stay_in_the_starter(steps: int) -> None:
    with pytest.raises(InputError, match=f"at least 3 steps, {steps} given"):
        last(adams(field, exact(0), steps))


@by_tolerance
def test_differentiates_through_every_evaluation(tol: float | None) -> None:
    y = exact(0).requires_grad_()
    assert torch.autograd.gradcheck(lambda start: last(adams(field, start, 4, tol)).y, y)


def test_backwards_in_time() -> None:
    found = last(adams(field, exact(1), 100, start=1.0, end=0.0)).y
    torch.testing.assert_close(found, exact(0), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("tol", "evaluations"), [(None, 9), (0.5, 10)], ids=["ab", "abm"])
def test_on_meta_it_takes_the_least_path(tol: float | None, evaluations: int) -> None:
    f = Counted(lambda t, y: y + 1)
    step = last(adams(f, torch.empty(2, 3, device="meta"), 3, tol))
    assert step.y.is_meta
    assert f.calls == greatest(step.evaluations) == evaluations
