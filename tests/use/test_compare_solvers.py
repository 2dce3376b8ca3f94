"""One network solved by several methods."""

from __future__ import annotations

import pytest
import torch

from rkcnn.data.images import Images
from rkcnn.error import InputError
from rkcnn.evaluation.weights import NetworkDescription
from rkcnn.model.create import create_model
from rkcnn.model.other_solver import SolverChoice
from rkcnn.use.compare_solvers import compare_solvers, read_choice
from rkcnn.use.evaluate import measure_on
from rkcnn.use.images import load_images
from rkcnn.use.load import Classifier
from use.conftest import Arrays


def test_each_solver_beside_the_trainings(digits: tuple[Images, Images], arrays: Arrays) -> None:
    test = load_images(arrays)[1]
    torch.manual_seed(0)
    name = "RKNet-rk4_38@k=4_4"
    model = Classifier(create_model(name, 10, 1).eval(), NetworkDescription.of(name, test))
    choices = [SolverChoice("rk4_38", 1), SolverChoice("euler", 3), SolverChoice("dopri5", tol=1e-4)]
    first, same, euler, dopri5 = compare_solvers(model, test, choices, "cpu")
    assert first.solver == same.solver == "rk4_38, 1 step"
    assert first.metrics == same.metrics == measure_on(model, test, "cpu")
    assert (first.changed, same.changed, first.evaluations) == (0, 0, 8), "4 evaluations in each of two periods"
    assert (euler.solver, euler.evaluations, euler.unconverged) == ("euler, 3 steps", 6, 0)
    assert dopri5.solver == "dopri5, tol 0.0001"
    assert dopri5.evaluations > 14
    assert 0 <= dopri5.changed <= 1


def test_a_choice_is_read() -> None:
    assert read_choice("method=dopri5, tol=1e-3") == SolverChoice("dopri5", tol=1e-3)
    assert read_choice("steps=8") == SolverChoice(steps=8)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' given; give a method with its steps or tolerance"),
        ("methd=rk4", r"did you mean method\?"),
        ("dopri5", r"'dopri5' given \(did you mean method=dopri5\?\)"),
        ("tol=1,tol=2", "'tol=2' given"),
        ("tol=small", "tol=small given; a tolerance is a number"),
        ("steps=1.5", "steps=1.5 given; give a whole number"),
        ("method=rk5", "no method 'rk5'"),
    ],
)
def test_what_is_no_choice_gets_one_sentence(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_choice(text)
