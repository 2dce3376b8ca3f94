"""Our SGD is torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rkcnn.fit.sgd import SGD


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_ten_steps_are_those_of_torch(nesterov: bool, decay: float) -> None:
    torch.manual_seed(0)
    ours = [torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    theirs = [p.detach().clone().requires_grad_() for p in ours]
    optimiser = torch.optim.SGD(theirs, lr=0.3, momentum=0.9, nesterov=nesterov, weight_decay=decay)
    mine = SGD(ours, 0.9, nesterov, decay)
    for step in range(10):
        for group in (ours, theirs):
            for p in group:
                p.grad = p.detach().sin() + step
        optimiser.param_groups[0]["lr"] = 0.3 / (step + 1)
        optimiser.step()
        mine.step(torch.tensor(0.3 / (step + 1), dtype=torch.float64))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_the_decay_acts_on_the_parameters_that_it_is_asked_for() -> None:
    torch.manual_seed(0)
    ours = [torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    theirs = [p.detach().clone().requires_grad_() for p in ours]
    groups: list[dict[str, Any]] = [{"params": [theirs[0], theirs[2]]}, {"params": [theirs[1]], "weight_decay": 0.0}]
    optimiser = torch.optim.SGD(groups, lr=0.3, momentum=0.9, weight_decay=0.1)
    mine = SGD(ours, 0.9, False, 0.1, [True, False, True])
    for _ in range(3):
        for p in (*ours, *theirs):
            p.grad = p.detach().sin()
        optimiser.step()
        mine.step(torch.tensor(0.3, dtype=torch.float64))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
