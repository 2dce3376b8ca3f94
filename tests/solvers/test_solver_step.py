"""What a solver yields, and the precision that it keeps."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from rkcnn.solvers.solver_step import SolverStep, align, at_least_float32


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


def test_is_frozen_and_converged_by_default() -> None:
    step = SolverStep(0.0, torch.ones(1), (), evaluations=0)
    assert step.converged is True
    with pytest.raises(dataclasses.FrozenInstanceError):
        step.iterations = 1  # type: ignore[misc]
