"""solve(): values at given times, against exact solutions, torchdiffeq and itself; and the page that explains it.

Its arguments are tested in test_arguments.py, and its gradients in test_solve_gradients.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torchdiffeq import odeint

from rkcnn.error import InputError
from rkcnn.solvers.methods import ADAMS, EMBEDDED, IMPLICIT, METHOD_NAMES, TABLEAUS
from rkcnn.solvers.solve import solve
from rkcnn.solvers.tableau import Tableau
from solvers.problems import OWN_TABLEAUS, by, exact, field, slopes

PAGE = Path(__file__).parents[2] / "docs" / "solvers.md"
TIMES = torch.tensor([0.0, 0.3, 0.4, 1.0], dtype=torch.float64)
any_method = pytest.mark.parametrize("method", METHOD_NAMES)


@any_method
@pytest.mark.parametrize("backwards", [False, True])
def test_the_solution_at_every_time(method: str, backwards: bool) -> None:
    times = TIMES.flip(0) if backwards else TIMES
    found = by(method, field, exact(float(times[0])), times, steps=20)
    assert found.converged
    assert torch.equal(found.ts, times)
    assert found.ys.shape == (4, 1, 2)
    order = TABLEAUS[method].order if method in TABLEAUS else 4
    assert float((found.ys[:, 0] - exact(times)).abs().max()) < max(10 * 0.06**order, 1e-7)  # h = 0.03


NAMES = {"euler": "euler", "midpoint": "midpoint", "heun": "heun2", "rk4_38": "rk4", "ab": "explicit_adams"}


@pytest.mark.parametrize("method", NAMES)
def test_equal_steps_are_torchdiffeqs(method: str) -> None:
    t = torch.linspace(0, 1, 6, dtype=torch.float64)
    options: dict[str, float] = {"step_size": 0.05, **({"max_order": 5} if method == "ab" else {})}
    between = t if method != "ab" else t[[0, -1]]  # we start Adams methods anew at each time
    theirs = odeint(field, exact(0), between, method=NAMES[method], options=options)
    ours = solve(field, exact(0), between, method, h=0.05)
    torch.testing.assert_close(ours.ys, theirs, rtol=0, atol=1e-12)
    assert ours.steps == 20


@pytest.mark.parametrize("method", EMBEDDED)
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-9])
def test_adaptive_steps_are_as_exact_as_torchdiffeqs(method: str, tol: float) -> None:
    theirs = odeint(field, exact(0), TIMES, method="dopri5", rtol=tol, atol=tol)[:, 0]
    ours = solve(field, exact(0), TIMES, method, tol).ys[:, 0]
    ours_error, theirs_error = (float((ys - exact(TIMES)).abs().max()) for ys in (ours, theirs))
    assert ours_error < max(10 * tol, 2 * theirs_error)


@any_method
@pytest.mark.parametrize("shape", [(), (2, 1, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_shape_and_precision(method: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    seen: list[tuple[torch.Size, torch.Size, torch.dtype]] = []

    def f(t: Tensor, y: Tensor) -> Tensor:
        seen.append((t.shape, y.shape, y.dtype))
        return -t * y

    y0 = torch.rand(shape, dtype=dtype)
    found = by(method, f, y0, [0.0, 0.5, 1.0], tol=1e-5)
    assert set(seen) == {(torch.Size(()), torch.Size(shape), dtype)}
    assert (found.ys.shape, found.ys.dtype, found.ts.dtype) == ((3, *shape), dtype, torch.float64)
    assert found.evaluations == len(seen) - (method in IMPLICIT)  # to see which tensors f reads
    torch.testing.assert_close(found.ys[-1], y0 * torch.exp(torch.tensor(-0.5, dtype=dtype)), rtol=0.1, atol=0)


def test_a_solution_is_printed_on_one_line() -> None:
    found = solve(lambda t, y: -y, torch.ones(3, 40, dtype=torch.float64), [0.0, 0.5, 2.0], "rk4", steps=2)
    said = "<Solution: 3 times from 0 to 2, values of shape (3, 40), converged, 16 evaluations in 4 steps>"
    assert repr(found) == str(found) == said


def test_half_precision_is_solved_in_float32() -> None:
    assert solve(lambda t, y: -y, torch.ones(2, dtype=torch.bfloat16), [0, 1]).ys.dtype == torch.float32


def rotation(t: Tensor, y: Tensor) -> Tensor:
    return torch.stack([y[1], -y[0]]) * (1 + t)


@any_method
@given(st.floats(-3, 3))
@settings(max_examples=3)
def test_a_shift_of_time_changes_nothing(method: str, shift: float) -> None:
    y0, times = torch.tensor([1.0, 0.5], dtype=torch.float64), torch.tensor([0.0, 0.4, 1.0], dtype=torch.float64)
    plain = by(method, rotation, y0, times)
    shifted = by(method, lambda t, y: rotation(t - shift, y), y0, times + shift)
    torch.testing.assert_close(shifted.ys, plain.ys, rtol=0, atol=1e-8)
    assert shifted.steps == plain.steps


@any_method
def test_time_backwards_with_f_negated_is_the_same_solve(method: str) -> None:
    y0 = torch.tensor([1.0, 0.5], dtype=torch.float64)
    forth = by(method, rotation, y0, [0.0, 0.5, 1.0])
    mirrored = by(method, lambda t, y: -rotation(-t, y), y0, [0.0, -0.5, -1.0])
    torch.testing.assert_close(mirrored.ys, forth.ys, rtol=0, atol=1e-12)
    back = by(method, rotation, forth.ys[-1], [1.0, 0.5, 0.0])
    if method not in ("euler", "midpoint", "heun"):
        torch.testing.assert_close(back.ys[-1], y0, rtol=0, atol=1e-3)


@any_method
@given(st.floats(-2, 2), st.floats(-2, 2))
@settings(max_examples=3)
def test_a_linear_problem_is_solved_linearly(method: str, a: float, b: float) -> None:
    """With equal steps every method is a linear map of y0."""
    one, two = torch.tensor([1.0, 0.5], dtype=torch.float64), torch.tensor([-0.2, 2.0], dtype=torch.float64)
    found = [solve(rotation, y0, [0.0, 1.0], method, 1e-12, steps=8).ys[-1] for y0 in (one, two, a * one + b * two)]
    torch.testing.assert_close(a * found[0] + b * found[1], found[2], rtol=0, atol=1e-9)


@pytest.mark.parametrize("method", [method for method in METHOD_NAMES if method not in EMBEDDED])
def test_a_size_of_steps_is_as_good_as_a_number(method: str) -> None:
    y0 = torch.tensor([1.0, 0.5], dtype=torch.float64)
    by_size = solve(rotation, y0, [0.0, 0.3, 0.9], method, h=0.1)
    first = solve(rotation, y0, [0.0, 0.3], method, steps=3)
    second = solve(rotation, first.ys[-1], [0.3, 0.9], method, steps=6)
    assert by_size.steps == 9
    assert by_size.evaluations == first.evaluations + second.evaluations
    torch.testing.assert_close(by_size.ys[1:], torch.stack([first.ys[-1], second.ys[-1]]), rtol=0, atol=1e-12)


def test_a_spent_budget_is_a_value() -> None:
    found = solve(lambda t, y: 50 * torch.cos(50 * t) + 0 * y, torch.zeros(1), [0, 0.1, 9, 10], max_evaluations=200)
    assert not found.converged
    assert found.ys.isnan().flatten().tolist() == [False, False, True, True]
    assert found.evaluations <= 400


def test_what_is_too_stiff_for_the_iteration_is_a_value() -> None:
    rates = torch.linspace(1, 100, 40)
    found = solve(lambda t, y: -rates * y, torch.ones(40), [0, 1, 2], "radau3", steps=1)
    assert not found.converged
    assert bool(found.ys.isfinite().all())
    assert solve(lambda t, y: -rates * y, torch.ones(40), [0, 1, 2], "radau3", steps=100, tol=1e-3).converged


def test_the_first_value_is_y0_and_one_time_is_enough() -> None:
    y0 = torch.rand(3)
    found = solve(lambda t, y: y, y0, [2.0])
    assert torch.equal(found.ys, y0[None])
    assert (found.converged, found.evaluations, found.steps) == (True, 0, 0)


@pytest.mark.parametrize("start", [0.0, 1e4, 1e6, 1.7e9])
@pytest.mark.parametrize("sign", [1, -1])
@any_method
def test_late_times_are_as_exact_as_early_ones(method: str, sign: int, start: float) -> None:
    """The time had the precision of y: in float32 a short step at a late time did not change it."""
    times = start + sign * torch.tensor([0.0, 0.25, 1.0], dtype=torch.float64)
    found = by(method, lambda t, y: -sign * y, torch.ones(1), times, tol=1e-5)
    early = by(method, lambda t, y: -sign * y, torch.ones(1), times - start, tol=1e-5)
    torch.testing.assert_close(found.ys, early.ys, rtol=0, atol=1e-6)
    assert (found.converged, found.steps, found.evaluations) == (True, early.steps, early.evaluations)
    assert torch.equal(found.ts, times)


def test_short_times_long_after_zero() -> None:
    times = torch.tensor([100000.001, 100000.002, 100000.003], dtype=torch.float64)
    found = solve(lambda t, y: -500 * y, torch.ones(1), times)
    torch.testing.assert_close(found.ys[:, 0], torch.tensor([1.0, 0.60653, 0.36788]), rtol=0, atol=1e-5)
    assert torch.equal(found.ts, times)


def test_f_gets_the_time_that_is_meant() -> None:
    """In float64, where it can be told from the start: y' = cos(t - 1e6)."""
    y0 = torch.zeros(1, dtype=torch.float64)
    for method in ("dopri5", "tsit5"):
        found = solve(lambda t, y: torch.cos(t - 1e6).reshape(1), y0, [1e6, 1e6 + 1], method, 1e-8)
        torch.testing.assert_close(found.ys[-1], torch.sin(torch.ones(1).double()), rtol=0, atol=1e-7)


@pytest.mark.parametrize(("given", "kept"), [(torch.float32, torch.float32), (torch.int64, torch.float64)])
def test_times_keep_their_precision(given: torch.dtype, kept: torch.dtype) -> None:
    times = torch.tensor([0, 1], dtype=given)
    found = solve(lambda t, y: -y, torch.ones(1), times)
    assert found.ts.dtype == kept
    times += 1
    assert found.ts.tolist() == [0, 1]


@any_method
@pytest.mark.parametrize("rate", [float("inf"), float("nan"), 1e30])
def test_values_that_are_not_finite_did_not_converge(method: str, rate: float) -> None:
    found = by(method, lambda t, y: rate * y, torch.ones(2), [0.0, 1.0, 2.0], max_evaluations=60, max_iterations=5)
    assert not found.converged


@any_method
def test_an_f_that_works_in_place_is_refused(method: str) -> None:
    buffer = torch.empty(2)

    def in_place(t: Tensor, y: Tensor) -> Tensor:
        return y.mul_(-1)

    def reused(t: Tensor, y: Tensor) -> Tensor:
        return torch.mul(y, -1 - t, out=buffer)

    with torch.no_grad():
        for f in (in_place, reused):
            with pytest.raises(InputError, match="f works in place"):
                by(method, f, torch.ones(2), [0.0, 1.0])
        constant = torch.tensor([1.0, 2.0])
        for g in (lambda t, y: y, lambda t, y: constant):  # no new tensors, but none that changes
            assert by(method, g, torch.ones(2), [0.0, 1.0], tol=1e-4).converged


@pytest.mark.parametrize(("method", "adjoint"), [("radau3", False), ("dopri5", True)])
def test_looking_for_parameters_leaves_no_trace(method: str, adjoint: bool) -> None:
    """The one more call of f took random numbers, and was counted."""
    calls = 0

    def f(t: Tensor, y: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        torch.rand(1)
        return -y

    torch.manual_seed(0)
    found = by(method, f, torch.ones(2), [0.0, 1.0], adjoint=adjoint, tol=1e-4)
    after = torch.rand(1)
    assert calls == found.evaluations + 1
    torch.manual_seed(0)
    with torch.no_grad():
        assert by(method, f, torch.ones(2), [0.0, 1.0], adjoint=adjoint, tol=1e-4).evaluations == found.evaluations
    assert torch.equal(after, torch.rand(1))


def test_the_iterations_of_abm_are_limited_as_asked() -> None:
    few, many = (
        solve(lambda t, y: -3 * y, torch.ones(1), [0.0, 1.0], "abm", 1e-6, steps=4, max_iterations=n) for n in (1, 50)
    )
    assert (few.converged, many.converged) == (False, True)
    assert few.evaluations == 12 < many.evaluations


def test_torch_func_works_through_explicit_steps() -> None:
    """A limit of vmap: one bool can't say which of its solves are finite."""
    rates = torch.tensor([1.0, 2.0])
    ends = torch.vmap(lambda rate: solve(lambda t, y: -rate * y, torch.ones(1), [0, 1], "rk4", steps=20).ys[-1, 0])(
        rates
    )
    torch.testing.assert_close(ends, torch.exp(-rates), rtol=1e-5, atol=0)


any_tableau = pytest.mark.parametrize("tableau", OWN_TABLEAUS, ids=lambda tableau: tableau.name)


@any_tableau
def test_a_tableau_is_solved_with_its_order(tableau: Tableau) -> None:
    def error(steps: int) -> float:
        return float((solve(field, exact(0), [0, 1], tableau, 1e-13, steps=steps).ys[-1] - exact(1)).abs().max())

    assert slopes([error(steps) for steps in (16, 32, 64)]) == pytest.approx([tableau.order] * 2, abs=0.3)


@any_tableau
def test_a_tableau_adapts_if_it_is_explicit_with_embedded_weights(tableau: Tableau) -> None:
    if not tableau.adapts:
        with pytest.raises(InputError, match=f"{tableau.name} takes equal steps"):
            solve(field, exact(0), [0, 1], tableau)
        return
    found = solve(field, exact(0), TIMES, tableau, 1e-6)
    assert found.converged
    torch.testing.assert_close(found.ys[:, 0], exact(TIMES), rtol=0, atol=1e-5)


def test_the_page_has_every_method_with_its_order() -> None:
    rows = re.findall(r"^\| `([^|]+)` \| ([0-9]+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    orders = {**{name: method.order for name, method in TABLEAUS.items()}, **dict.fromkeys(ADAMS, 4)}
    assert {name: int(order) for name, order in rows} == orders
