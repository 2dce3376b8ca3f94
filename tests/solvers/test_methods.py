"""Every named method: its coefficients by laws that need no trees, its order as measured."""

from __future__ import annotations

import copy
from math import factorial

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from rkcnn.solvers.explicit import explicit
from rkcnn.solvers.implicit import implicit
from rkcnn.solvers.methods import TABLEAUS, gauss2, radau3, rk4_38
from rkcnn.solvers.tableau import Tableau
from solvers.problems import exact, field, last, slopes

EXPLICIT = {"euler": (1, 1), "midpoint": (2, 2), "heun": (2, 2), "rk4": (4, 4), "rk4_38": (4, 4)}
PAIRS = {"dopri5": (7, 5), "tsit5": (7, 5)}
GAUSS = {"gauss1": (1, 2), "gauss2": (2, 4), "gauss3": (3, 6)}
OTHERS = {"radau2": (2, 3), "radau3": (3, 5), "lobatto3c": (3, 4)}
named = pytest.mark.parametrize("method", list(TABLEAUS.values()), ids=list(TABLEAUS))


def solution(method: Tableau, steps: int) -> torch.Tensor:
    if method.kind == "explicit":
        return last(explicit(field, exact(0), method, steps)).y
    step = last(implicit(field, exact(0), method, steps=steps, tol=1e-15, max_iterations=60))
    return step.y


def measured_orders(method: Tableau) -> list[float]:
    grids = (8, 16, 32) if method.order > 4 else (16, 32, 64)
    return slopes([float((solution(method, steps) - exact(1)).abs().max()) for steps in grids])


def test_names_stages_and_orders() -> None:
    found = {method.name: (method.stages, method.order) for method in TABLEAUS.values()}
    assert found == EXPLICIT | PAIRS | GAUSS | OTHERS
    assert list(found) == list(TABLEAUS)


def test_the_problem_is_solved_by_its_closed_form() -> None:
    def f(t: float, y: np.ndarray) -> np.ndarray:
        return field(t, torch.as_tensor(y)[None])[0].numpy()

    found = solve_ivp(f, (0, 1), exact(0)[0].numpy(), "DOP853", rtol=1e-13, atol=1e-13)
    assert np.abs(found.y[:, -1] - exact(1)[0].numpy()).max() < 1e-12


@named
def test_measured_order(method: Tableau) -> None:
    above = 0.9 if method.embedded else 0.3  # the pairs' h^5 error is so small that h^6 still shows at h = 1/64
    for found in measured_orders(method):
        assert method.order - 0.2 < found < method.order + above


@pytest.mark.parametrize("method", [rk4_38, gauss2, radau3], ids=lambda method: method.name)
def test_a_wrong_node_would_show(method: Tableau) -> None:
    """torchdiffeq's gl4 has a wrong c; on an autonomous problem nobody sees it."""
    wrong = copy.copy(method)
    object.__setattr__(wrong, "c", (*method.c[:-1], method.c[-1] + 0.01))
    assert max(measured_orders(wrong)) < 1.5


@named
def test_quadrature_stability_function_and_stage_order(method: Tableau) -> None:
    """b c^(k-1) = 1/k and b A^(k-1) 1 = 1/k!, that is R(z) = exp(z), up to the order."""
    a, b, c = (np.array(x) for x in (method.a, method.b, method.c))
    ones = np.ones(method.stages)
    for k in range(1, method.order + 1):
        assert b @ c ** (k - 1) == pytest.approx(1 / k, abs=1e-13)
        assert b @ np.linalg.matrix_power(a, k - 1) @ ones == pytest.approx(1 / factorial(k), abs=1e-13)
    if method.kind == "fully implicit":  # collocation: A c^(k-1) = c^k / k up to s; Lobatto IIIC up to s - 1
        for k in range(1, method.stages + (method.name != "lobatto3c")):
            assert a @ c ** (k - 1) == pytest.approx(c**k / k, abs=1e-13)


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("gauss1", [0, 1]),
        ("gauss2", [0, 0, 1]),
        ("gauss3", [0, 0, 0, 1]),
        ("radau2", [0, -1, 1]),
        ("radau3", [0, 0, -1, 1]),
    ],
)
def test_collocation_nodes_are_zeros_of_legendre_polynomials(name: str, nodes: list[float]) -> None:
    """Gauss: of P_s; Radau IIA: of P_s - P_(s-1), on [0, 1]."""
    zeros = (1 + np.polynomial.legendre.legroots(nodes)) / 2
    assert TABLEAUS[name].c == pytest.approx(sorted(zeros), abs=1e-14)
