"""A trained network solved by another method."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rkcnn.error import InputError
from rkcnn.model.create import create_model
from rkcnn.model.network import Network
from rkcnn.use.other_solver import CountedSolver, SolverChoice, describe_solver, find_ode_periods, solve_by


def build(name: str) -> Network:
    torch.manual_seed(0)
    network = create_model(name, channels=1).eval()
    assert isinstance(network, Network)
    return network


@pytest.fixture
def images() -> Tensor:
    return torch.randn(3, 1, 20, 20, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", ["RKNN-rk4_38@k=8,stem=conv", "ODENet-ab@k=8", "SONODE@k=8", "ANODE-euler@k=8_8"])
def test_fine_solvers_agree_and_a_coarse_one_does_not(name: str, images: Tensor) -> None:
    network = build(name)
    with torch.no_grad():
        exact = solve_by(network, SolverChoice("dopri5", tol=1e-6))(images)
        fine = (SolverChoice("rk4", 20), SolverChoice("radau3", 8, 1e-6), SolverChoice("tsit5", tol=1e-6))
        *others, coarse = (
            float((solve_by(network, choice)(images) - exact).abs().max())
            for choice in (*fine, SolverChoice("euler", 2))
        )
        assert max(others) < coarse / 5


@pytest.mark.parametrize("name", ["RKNet-dopri5@k=8,tol=0.01", "ODENet-abm@k=8"])
def test_without_a_choice_it_solves_as_trained_and_counts(name: str, images: Tensor) -> None:
    network = build(name)
    copy = solve_by(network, SolverChoice())
    with torch.no_grad():
        assert torch.equal(copy(images), network(images))
    (solver,) = (period.solver for period in find_ode_periods(copy))
    assert isinstance(solver, CountedSolver)
    assert solver.counts.images == 3
    assert solver.counts.evaluations / 3 >= solver.least_evaluations
    assert not isinstance(find_ode_periods(network)[0].solver, CountedSolver), "the network given is left as it was"


def test_what_is_left_open_is_as_in_training() -> None:
    def choose(name: str, **choice: object) -> str:
        return describe_solver(find_ode_periods(solve_by(build(name), SolverChoice(**choice)))[0].solver)  # type: ignore[arg-type]

    assert choose("RKNet-rk4_38@k=8,r=3", method="euler") == "euler, 3 steps"
    assert choose("RKNet-rk4_38@k=8", method="ab") == "ab, 3 steps"
    assert choose("RKNet-rk4_38@k=8", method="dopri5") == "dopri5, tol 0.001"
    assert choose("RKNet-rk4_38@k=8", method="dopri5", steps=2) == "dopri5, 2 steps"
    assert choose("RKNet-radau3@k=8", steps=2) == "radau3, 2 steps, tol 0.5"
    assert choose("RKNet-euler@k=8", method="gauss1", tol=0.1) == "gauss1, 1 step, tol 0.1"


def test_statistics_of_each_evaluation_fit_no_other_method(images: Tensor) -> None:
    network = build("RKNet-rk4_38@k=8_8,statistics=each")
    for choice in (SolverChoice("rk4"), SolverChoice(steps=2)):
        with pytest.raises(
            InputError, match=r"statistics for each evaluation of f by rk4_38, 1 step, and for no others"
        ):
            solve_by(network, choice)
    with torch.no_grad():
        assert torch.equal(solve_by(network, SolverChoice())(images), network(images))


@pytest.mark.parametrize("name", ["RKCNN-R-2@k=8", "Leapfrog@k=8", "Identity@k=8"])
def test_a_network_without_f_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"has no f that another method could solve.* RKNN, RKNet, ODENet, SONODE"):
        solve_by(build(name), SolverChoice("rk4"))


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"method": "dopri"}, r"did you mean dopri5\?"),
        ({"steps": 0}, "from 1 to 1000"),
        ({"steps": "8"}, "steps='8' given; give a whole number from 1 to 1000"),
        ({"steps": 2.5}, "steps=2.5 given; give a whole number"),
        ({"steps": True}, "steps=True given; give a whole number"),
        ({"tol": "x"}, "tol='x' given; a tolerance is a positive number"),
        ({"method": ["rk4"]}, "no method"),
        ({"tol": -1.0}, "a tolerance is a positive number"),
        ({"method": "rk4", "tol": 0.1}, "which takes equal steps"),
        ({"method": "dopri5", "tol": 0.1, "steps": 2}, "give one of the two"),
        ({"method": "abm", "steps": 2}, "which needs 3"),
    ],
)
def test_a_choice_that_fits_no_method_is_refused(choice: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        solve_by(build("RKNet-rk4_38@k=8"), SolverChoice(**choice))  # type: ignore[arg-type]
