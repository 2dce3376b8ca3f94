"""What a solver yields, and the precision that it keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from rkcnn.solvers.adams import adams
from rkcnn.solvers.adaptive import adaptive
from rkcnn.solvers.explicit import explicit
from rkcnn.solvers.implicit import implicit
from rkcnn.solvers.methods import dopri5, gauss2
from rkcnn.solvers.solver_step import SolverStep, align, at_least_float32
from solvers.problems import exact, field


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
