"""solve(): its gradients, by backpropagation, by the adjoint and by the implicit function theorem."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rkcnn.error import InputError
from rkcnn.solvers.methods import IMPLICIT, METHOD_NAMES
from rkcnn.solvers.solve import solve
from rkcnn.solvers.tableau import Tableau
from solvers.problems import OWN_TABLEAUS, by

any_method = pytest.mark.parametrize("method", METHOD_NAMES)


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


@pytest.mark.parametrize("method", [method for method in METHOD_NAMES if method not in IMPLICIT and method != "euler"])
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


def stiff(t: Tensor, y: Tensor) -> Tensor:
    """Backwards in time its second part grows as exp(40 t)."""
    return torch.stack([-y[0] * (1 + y[1] ** 2), -40 * (y[1] - torch.cos(3 * t) / 2)])


@pytest.mark.parametrize(
    "settings",
    [
        {"adjoint": True, "max_evaluations": 1000},
        {"adjoint": True, "method": "abm", "steps": 60, "max_iterations": 2},
        {"method": "radau3", "steps": 40, "max_iterations": 1},
    ],
)
def test_the_gradient_of_a_failed_backward_solve_is_nan(settings: dict[str, Any]) -> None:
    """It was that of the state which the backward solve had reached: [2.9e-209, -1.6] instead of [0.32, -0.01]."""
    y0 = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
    scale = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    found = solve(lambda t, y: scale * stiff(t, y), y0, [0.0, 0.5, 1.0], parameters=[scale], **settings)
    for gradient in torch.autograd.grad(found.ys[-1, 0], [y0, scale]):
        assert bool(gradient.isnan().all())


def test_the_gradient_of_an_implicit_method_is_a_number_below_the_precision_of_y() -> None:
    """A tolerance that float32 can't meet is met as well as float32 can."""
    y0 = torch.linspace(-1, 1, 50).requires_grad_()
    found = solve(lambda t, y: torch.sin(3 * y.roll(1)) - y, y0, [0.0, 1.0], "radau3", 1e-12, steps=4)
    (gradient,) = torch.autograd.grad(found.ys[-1].square().sum(), y0)
    assert bool(gradient.isfinite().all())


WAYS: list[dict[str, Any]] = [
    {"adjoint": True},
    {"adjoint": True, "method": "rk4", "steps": 20},
    {"adjoint": True, "method": "abm", "steps": 20},
    {"method": "radau3", "steps": 4},
]


@pytest.mark.parametrize("settings", WAYS)
@pytest.mark.parametrize("kind", ["time", "nothing", "parameter"])
def test_an_f_that_does_not_read_y_has_gradients(kind: str, settings: dict[str, Any]) -> None:
    y0, w = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in ([1.0, 0.5], [2.0, 3.0]))
    fields = {
        "time": lambda t, y: torch.cos(t).expand(2),
        "nothing": lambda t, y: 0 * w.detach(),
        "parameter": lambda t, y: w,
    }
    found = solve(fields[kind], y0, [0.0, 1.0], parameters=[w], **settings).ys[-1].sum()
    to_y0, to_w = torch.autograd.grad(found, [y0, w], allow_unused=True)
    torch.testing.assert_close(to_y0, torch.ones_like(y0))
    expected = torch.full_like(w, kind == "parameter")
    torch.testing.assert_close(torch.zeros_like(w) if to_w is None else to_w, expected)


@pytest.mark.parametrize("settings", WAYS)
def test_second_derivatives_that_would_be_wrong_are_refused(settings: dict[str, Any]) -> None:
    y0 = torch.ones(1, dtype=torch.float64, requires_grad=True)
    end = solve(lambda t, y: -y.square(), y0, [0.0, 1.0], **settings).ys[-1].sum()
    with pytest.raises(InputError, match="`create_graph=True` given"):
        torch.autograd.grad(end, y0, create_graph=True)


@pytest.mark.parametrize("method", [method for method in METHOD_NAMES if method not in IMPLICIT])
def test_second_derivatives_of_explicit_and_adams_methods(method: str) -> None:
    """y(1) = y0 / (1 + y0): its second derivative at 1 is -1/4."""
    y0 = torch.ones(1, dtype=torch.float64, requires_grad=True)
    end = by(method, lambda t, y: -y.square(), y0, [0.0, 1.0], steps=64).ys[-1].sum()
    (first,) = torch.autograd.grad(end, y0, create_graph=True)
    (second,) = torch.autograd.grad(first, y0)
    assert float(second) == pytest.approx(-0.25, abs=0.02 if method == "euler" else 1e-3)


@pytest.mark.parametrize("tableau", OWN_TABLEAUS, ids=lambda tableau: tableau.name)
def test_gradients_of_a_tableau(tableau: Tableau) -> None:
    f, y0 = Pendulum(), torch.tensor([[1.0, 0.0], [0.5, 0.2]], dtype=torch.float64).requires_grad_()
    found = solve(f, y0, [0.0, 0.5, 2.0], tableau, 1e-9, steps=100).ys[1:].square().sum()
    for gradient, expected in zip(torch.autograd.grad(found, [y0, f.friction]), REFERENCE, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=0, atol=2e-3)
