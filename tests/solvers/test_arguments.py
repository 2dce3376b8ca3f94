"""The arguments of solve(): what is accepted, and what is refused in one sentence before f is called."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.solvers.arguments import count_steps, read_count, read_positive, read_times
from rkcnn.solvers.solve import Solution, solve

RK4: dict[str, Any] = {"method": "rk4", "steps": 2}
RADAU: dict[str, Any] = {"method": "radau3", "steps": 2}


def solved(**change: Any) -> Solution:
    return solve(**{"f": lambda t, y: -y, "y0": torch.ones(2), "t": [0.0, 1.0], **change})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"f": 3}, "function of t and y"),
        ({"method": "rk5"}, r"no method 'rk5' \(did you mean rk4\?\); methods are euler"),
        ({"method": None}, "no method None; methods are euler"),
        ({"method": "euler"}, "give either steps"),
        ({"method": "euler", "t": [0.0]}, "give either steps"),
        ({"method": "euler", "steps": 2, "h": 0.1}, "give either steps"),
        ({"steps": 2, "h": 0.1}, "give either steps"),
        *(({"method": "euler", "steps": n}, "`steps=.*` given.*at least 1") for n in (0, -2, True, 2.0, "2")),
        ({"method": "euler", "steps": -2, "t": [0.0]}, "`steps=-2` given.*at least 1"),
        *(({"method": "euler", "h": h}, "`h=.*` given.*a positive number") for h in (0.0, float("nan"), True, "a")),
        ({"method": "euler", "h": 5e-324}, "`h=5e-324` given; it is too small"),
        ({"method": "ab", "steps": 2}, "at least 3 steps"),
        *(({"tol": tol}, "`tol=.*` given.*positive number") for tol in (0.0, float("nan"), float("inf"), True, None)),
        ({"tol": 10**400}, "a positive number"),
        ({"max_evaluations": 7}, "needs 8"),
        *(({"max_evaluations": n}, "`max_evaluations=.*at least 1") for n in (None, "a", 0, True, float("inf"))),
        *(({**RADAU, "max_iterations": n}, "`max_iterations=.*at least 1") for n in (None, 1.5, 0, -1, True)),
        *(({"t": t}, "increase, or decrease") for t in ([0.0, 1.0, 1.0], [0.0, 1.0, 0.5], [0.0, float("inf")], [])),
        *(({"t": t}, "increase, or decrease") for t in (1.0, None, "01", [0, 10**400], [0, 1j], torch.zeros(2, 2))),
        ({"t": torch.tensor([0, 1 + 1j])}, "real, finite times"),
        ({"t": np.array([0, 1 + 1j])}, "real, finite times"),
        ({"t": torch.zeros(10_000)}, "increase, or decrease"),
        ({"t": torch.tensor([0.0, 1.0], requires_grad=True)}, r"give t.detach\(\)"),
        *(
            ({"t": t, **how}, "float32, which holds numbers")
            for t in ([0, 1e300], [1e39, 0])
            for how in ({}, RK4, RADAU)
        ),
        ({"t": [-3e38, 3e38]}, "gaps between them, that are smaller"),
        ({"t": [1e300]}, r"`t=\[1e\+300\]` given; the solve is in torch.float32"),
        ({"t": [-1e308, 1e308], "y0": torch.ones(2).double()}, "float64, which holds numbers"),
        ({"y0": [1.0]}, "it must be a tensor"),
        ({"y0": torch.tensor([1])}, "floating-point"),
        ({"y0": torch.tensor([1j])}, "floating-point"),
        ({"y0": torch.zeros(0)}, "floating-point"),
        ({"y0": torch.ones(2).to(torch.float8_e4m3fn)}, "float8_e4m3fn .* 16, 32 or 64 bits"),
        ({"y0": torch.eye(2).to_sparse()}, "it must be a dense tensor"),
        *(({"parameters": p}, "`parameters=.*list of tensors") for p in ("abc", 5, [1.0], torch.ones(2))),
        ({**RADAU, "adjoint": True}, "implicit function theorem"),
        ({"f": lambda t, y: y.sum()}, r"it must be y0's, \(2,\)"),
        ({"f": lambda t, y: 1.0}, "f gave a float"),
        *(({**kind, "f": lambda t, y: 1j * y}, "complex64 for a real y") for kind in ({}, RK4, RADAU)),
    ],
)
def test_refuses_in_one_sentence_what_cannot_work(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        solved(**change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", [0.25, Fraction(1, 4), np.float32(0.25), np.array(0.25), torch.tensor(0.25)])
def test_a_number_may_come_from_torch_or_numpy(number: Any) -> None:
    assert read_positive("tol", number) == 0.25
    assert solved(method="rk4", h=number).steps == 4
    assert solved(tol=number).converged


@pytest.mark.parametrize("number", [3, np.int64(3), np.array(3), torch.tensor(3)])
def test_a_whole_number_too(number: Any) -> None:
    assert read_count("steps", number) == solved(method="rk4", steps=number).steps == 3


@pytest.mark.parametrize("times", [range(3), (0, 1, 2), np.arange(3.0), torch.arange(3), torch.arange(3.0)])
def test_times_may_be_any_list(times: Any) -> None:
    assert read_times(times).tolist() == [0.0, 1.0, 2.0]
    with torch.no_grad():
        assert read_times(torch.tensor([1.0, 0.0], requires_grad=True)).tolist() == [1.0, 0.0]


def test_a_size_is_turned_into_the_least_number_of_steps() -> None:
    assert [count_steps(None, 0.1, 0.0, end) for end in (0.3, -0.31, 1e-9)] == [3, 4, 1]
    assert count_steps(7, None, 0.0, 1.0) == 7


def test_parameters_may_come_from_an_iterator() -> None:
    layer = torch.nn.Linear(2, 2)

    def f(t: Tensor, y: Tensor) -> Tensor:
        return layer(y)

    solved(f=f, **RADAU, parameters=layer.parameters()).ys.sum().backward()
    assert layer.bias.grad is not None


def test_times_may_be_as_large_as_the_precision() -> None:
    found = solved(f=lambda t, y: 0 * y, y0=torch.ones(2).double(), t=[0.0, 1e300])
    assert found.converged
    assert torch.equal(found.ys[1], found.ys[0])
