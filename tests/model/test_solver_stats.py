"""What data-dependent solves took, over many of them."""

from __future__ import annotations

import pytest
import torch

from rkcnn.model.create import create_model
from rkcnn.model.solver_stats import SolveAverages, SolverStats
from rkcnn.solvers.solver_step import SolverStep


def test_sums_and_resets() -> None:
    stats, y = SolverStats(), torch.zeros(1)
    stats.add(SolverStep(1.0, y, (), torch.tensor([4, 8]), converged=torch.tensor([True, False])))
    stats.add(SolverStep(1.0, y, (), torch.tensor([6]), converged=torch.tensor([True])))
    assert stats.read() == SolveAverages(0.25, 6.0, 0.0, 0.0)
    again = SolverStats()
    again.restore(stats.sums())
    assert again.read() == stats.read()
    stats.reset()
    assert stats.read() == SolveAverages(0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("name", ["ODENet-abm@k=8", "RKNet-radau3@k=8", "RKNet-dopri5@k=8,tol=0.1"])
def test_a_network_counts_its_solves(name: str) -> None:
    network = create_model(name, channels=1)
    period = network.get_submodule("periods.0")
    calls = []
    network.get_submodule("periods.0.f").register_forward_hook(lambda *_: calls.append(1))
    network.train()(torch.rand(2, 1, 28, 28))
    assert isinstance(period.solver_stats, SolverStats)
    assert period.solver_stats.read().evaluations == len(calls)


@pytest.mark.parametrize("name", ["RKNet-radau3@k=8,r=2", "RKNet-dopri5@k=8,tol=0.1,adjoint=on,norm=bn"])
def test_what_the_gradient_takes_is_counted_apart(name: str) -> None:
    network = create_model(name, channels=1).train()
    period = network.get_submodule("periods.0")
    assert isinstance(period.solver_stats, SolverStats)
    calls: list[int] = []
    network.get_submodule("periods.0.f").register_forward_hook(lambda *_: calls.append(1))
    out = network(torch.rand(2, 1, 28, 28))
    forward = len(calls)
    out.sum().backward()
    took = period.solver_stats.read()
    assert took.evaluations == forward
    assert took.backward_evaluations == len(calls) - forward
    assert took.backward_products > 0
