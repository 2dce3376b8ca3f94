"""What a solver yields, and the precision that it keeps."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from rkcnn.solvers.solver_step import SolverStep, spread, widen


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_widen(given: torch.dtype, kept: torch.dtype) -> None:
    assert widen(torch.ones(2, dtype=given)).dtype == kept


def test_widen_copies_nothing_that_is_wide() -> None:
    y = torch.ones(2)
    assert widen(y) is y


@pytest.mark.parametrize("groups", [1, 5])
def test_spread_broadcasts_against_the_state(groups: int) -> None:
    y = torch.ones(5, 3, 2, 2)
    assert (spread(torch.ones(groups), y) * y).shape == y.shape
    assert spread(torch.arange(groups), y)[:, 0, 0, 0].tolist() == list(range(groups))


def test_is_frozen_and_converged_by_default() -> None:
    moment = SolverStep(torch.ones(1), (), evaluations=0)
    assert moment.converged is True
    with pytest.raises(dataclasses.FrozenInstanceError):
        moment.iterations = 1  # type: ignore[misc]
