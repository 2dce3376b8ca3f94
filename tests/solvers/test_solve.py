"""solve(): values at given times, against exact solutions, torchdiffeq and itself; and the page that explains it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torchdiffeq import odeint

from rkcnn.error import InputError
from rkcnn.solvers.methods import ADAMS, EMBEDDED, IMPLICIT, METHODS, SOLVERS
from rkcnn.solvers.solve import Solution, solve
from solvers.problems import exact, field

PAGE = Path(__file__).parents[2] / "docs" / "solvers.md"
TIMES = torch.tensor([0.0, 0.3, 0.4, 1.0], dtype=torch.float64)
any_method = pytest.mark.parametrize("method", SOLVERS)


def by(method: str, f: object, y0: Tensor, t: object, **settings: object) -> Solution:
    """Solve with equal steps, or where a method can with adaptive ones."""
    steps = None if method in EMBEDDED else settings.pop("steps", 8)
    settings = {"tol": 1e-9, **settings, "steps": steps}
    return solve(f, y0, t, method, **settings)  # type: ignore[arg-type]


@any_method
@pytest.mark.parametrize("backwards", [False, True])
def test_the_solution_at_every_time(method: str, backwards: bool) -> None:
    times = TIMES.flip(0) if backwards else TIMES
    found = by(method, field, exact(float(times[0])), times, steps=20)
    assert found.converged
    assert torch.equal(found.ts, times)
    assert found.ys.shape == (4, 1, 2)
    order = METHODS[method].order if method in METHODS else 4
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
    assert (found.ys.shape, found.ys.dtype, found.ts.dtype) == ((3, *shape), dtype, dtype)
    assert found.evaluations == len(seen)
    torch.testing.assert_close(found.ys[-1], y0 * torch.exp(torch.tensor(-0.5, dtype=dtype)), rtol=0.1, atol=0)


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


@pytest.mark.parametrize("method", [method for method in SOLVERS if method not in EMBEDDED])
def test_a_size_of_steps_is_as_good_as_a_number(method: str) -> None:
    y0 = torch.tensor([1.0, 0.5], dtype=torch.float64)
    with torch.no_grad():  # with gradients, an implicit solve evaluates f once more to see which tensors it reads
        by_size = solve(rotation, y0, [0.0, 0.3, 0.9], method, h=0.1)
        first = solve(rotation, y0, [0.0, 0.3], method, steps=3)
        second = solve(rotation, first.ys[-1], [0.3, 0.9], method, steps=6)
    assert by_size.steps == 9
    assert by_size.evaluations == first.evaluations + second.evaluations
    torch.testing.assert_close(by_size.ys[1:], torch.stack([first.ys[-1], second.ys[-1]]), rtol=0, atol=1e-12)


class Pendulum(nn.Module):
    """y = (angle, speed), with friction that can be learned."""

    def __init__(self) -> None:
        super().__init__()
        self.friction = nn.Parameter(torch.tensor(0.1, dtype=torch.float64))

    def forward(self, t: Tensor, y: Tensor) -> Tensor:
        angle, speed = y.unbind(-1)
        return torch.stack([speed, -torch.sin(angle) - self.friction * speed], -1)


def gradients(method: str, **settings: object) -> tuple[Tensor, Tensor]:
    f, y0 = Pendulum(), torch.tensor([[1.0, 0.0], [0.5, 0.2]], dtype=torch.float64).requires_grad_()
    found = by(method, f, y0, [0.0, 0.5, 2.0], steps=16, **settings)
    found.ys[1:].square().sum().backward()  # values between count too
    assert y0.grad is not None
    assert f.friction.grad is not None
    return y0.grad, f.friction.grad


REFERENCE = gradients("dopri5", tol=1e-10)


@any_method
def test_gradients_flow_to_y0_and_to_what_f_reads(method: str) -> None:
    for found, expected in zip(gradients(method), REFERENCE, strict=True):
        tolerance = {"euler": 1, "midpoint": 0.02, "heun": 0.02, "gauss1": 0.01}.get(method, 1e-3)
        torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("method", [method for method in SOLVERS if method not in IMPLICIT and method != "euler"])
def test_gradients_by_the_adjoint(method: str) -> None:
    for found, expected in zip(gradients(method, adjoint=True), REFERENCE, strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0.02 if method in ("midpoint", "heun") else 1e-3)


@pytest.mark.parametrize(("method", "adjoint"), [("radau3", False), ("dopri5", True)])
def test_a_tensor_that_f_hides_is_refused_and_a_named_one_gets_its_gradient(method: str, adjoint: bool) -> None:
    rate = torch.tensor(0.7, requires_grad=True)
    arguments = {"method": method, "adjoint": adjoint, "steps": None if adjoint else 4}

    def f(t: Tensor, y: Tensor) -> Tensor:
        return -rate * y

    with pytest.raises(InputError, match="name them in `parameters`"):
        solve(f, torch.ones(2), [0, 1], **arguments)  # type: ignore[arg-type]
    with torch.no_grad():
        solve(f, torch.ones(2), [0, 1], **arguments)  # type: ignore[arg-type]
    solve(f, torch.ones(2), [0, 1], parameters=[rate], **arguments).ys[-1].sum().backward()  # type: ignore[arg-type]
    torch.testing.assert_close(rate.grad, -2 * torch.exp(torch.tensor(-0.7)), rtol=1e-3, atol=0)


@pytest.mark.parametrize(("method", "adjoint"), [("radau3", False), ("dopri5", True)])
def test_a_list_of_parameters_must_be_whole(method: str, adjoint: bool) -> None:
    """Also where f is a module that reads a tensor from outside; what a named tensor was made of need not be named."""
    rate, shift = torch.tensor(0.7, requires_grad=True), torch.tensor(0.1, requires_grad=True)
    arguments: dict[str, Any] = {"method": method, "adjoint": adjoint, "steps": None if adjoint else 4}

    class Leaky(torch.nn.Linear):
        def forward(self, t: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
            return super().forward(y) + shift

    with pytest.raises(InputError, match=r"make f a torch.nn.Module that has them, all of them"):
        solve(Leaky(2, 2), torch.ones(1, 2), [0, 1], **arguments)
    double = 2 * rate

    def f(t: Tensor, y: Tensor) -> Tensor:
        return shift - double * y

    with pytest.raises(InputError, match="name them in `parameters`"):
        solve(f, torch.ones(2), [0, 1], parameters=[double], **arguments)
    solve(f, torch.ones(2), [0, 1], parameters=[double, shift], **arguments).ys[-1].sum().backward()
    assert rate.grad is not None
    assert shift.grad is not None


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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "rk5"}, "methods are euler"),
        ({"method": "euler"}, "give either steps"),
        ({"method": "euler", "steps": 2, "h": 0.1}, "give either steps"),
        ({"method": "euler", "steps": 0}, "at least 1"),
        ({"method": "euler", "h": 0.0}, "a positive number"),
        ({"method": "euler", "h": float("nan")}, "a positive number"),
        ({"method": "ab", "steps": 2}, "at least 3 steps"),
        ({"tol": 0.0}, "a positive number"),
        ({"tol": float("nan")}, "a positive number"),
        ({"max_evaluations": 7}, "needs 8"),
        ({"t": [0.0, 1.0, 1.0]}, "increase, or decrease"),
        ({"t": [0.0, 1.0, 0.5]}, "increase, or decrease"),
        ({"t": [0.0, float("inf")]}, "increase, or decrease"),
        ({"t": []}, "increase, or decrease"),
        ({"t": 1.0}, "increase, or decrease"),
        ({"y0": torch.tensor([1])}, "floating-point"),
        ({"y0": torch.zeros(0)}, "floating-point"),
        ({"f": lambda t, y: y.sum()}, "it must be y0's, \\(2,\\)"),
        ({"method": "radau3", "steps": 2, "adjoint": True}, "implicit function theorem"),
    ],
)
def test_refuses_in_one_sentence_what_cannot_work(change: dict[str, object], words: str) -> None:
    arguments = {"f": lambda t, y: -y, "y0": torch.ones(2), "t": [0.0, 1.0], **change}
    with pytest.raises(InputError, match=words) as caught:
        solve(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_the_snippets_of_the_page_run() -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert snippets
    names: dict[str, object] = {}
    for snippet in snippets:
        exec(snippet, names)


def test_the_page_has_every_method_with_its_order() -> None:
    rows = re.findall(r"^\| `([^|]+)` \| ([0-9]+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    orders = {**{name: method.order for name, method in METHODS.items()}, **dict.fromkeys(ADAMS, 4)}
    assert {name: int(order) for name, order in rows} == orders
