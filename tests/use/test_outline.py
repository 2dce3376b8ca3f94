"""The tree of a network adds up to its cost."""

from __future__ import annotations

import pytest
import torch

from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.use.outline import Component, outline

NAMES = (
    "RKCNN-E-3@k=8",
    "RKCNN-I-2_3@k=8_12,r=2",
    "RKCNN-R-2@k=8,sweeps=2,shared=on",
    "RKCNN-I-2_2@k=8,merge=concat",
    "ResNet-bottleneck@k=8,r=5",
    "RKNN-rk4_38@k=8_8",
    "RKNet-radau3@k=8",
    "ODENet-abm@k=8",
    "SONODE@k=8",
    "SONODE-gauss1@k=8",
    "ANODE-dopri5@k=8,tol=0.01",
    "DenseNet-2_2@k=8",
    "CliqueNet-3_3@k=8,attention=off,multiscale=off",
    "Momentum@k=8,v0=learned",
    "LM@k=8,r=3",
    "Leapfrog@k=8",
    "Midpoint@k=8",
    "Hamiltonian@k=8",
    "Identity@k=8_8",
    "ResNet-1001",
    "DenseNet-L100-k24",
    "CliqueNet-k80-T18",
    "CliqueNet-k150-T30",
    "MomentumResNet-101",
    "SONODE-64",
)
LOOSE = {"LM@k=8,r=3": 2}  # c_2 and c_3 belong to no step


def walk(part: Component) -> list[Component]:
    return [part, *(below for child in part.parts for below in walk(child))]


@pytest.mark.parametrize("name", NAMES)
def test_parts_add_up(name: str) -> None:
    with torch.device("meta"):
        network = create_model(name)
    tree, total = outline(network, 28), cost(network, 28)
    assert (tree.title, tree.params, tree.flops) == (name, total.params, total.flops)
    for part in walk(tree):
        if part.parts and not part.title.startswith("transition"):  # which shows its attention alone
            loose = LOOSE.get(name, 0) if part.title.startswith("period") else 0
            assert part.params == loose + sum(child.params * child.count for child in part.parts), part.title
            assert part.flops == sum(child.flops * child.count for child in part.parts), part.title
            said = part.title.rstrip(" 0123456789")
            assert said not in [child.title for child in part.parts], "the same words twice on a branch"


def test_the_least_counts_of_a_solver_are_told_from_exact_ones() -> None:
    with torch.device("meta"):
        tree = outline(create_model("ODENet-abm@k=8"), 28)
    assert {part.title: part.exact for part in walk(tree)} == {
        tree.title: False,
        "preprocessor": True,
        "period 1": False,
        "f": False,
        "postprocessor, readout": True,
        "postprocessor, classifier": True,
    }


def test_parts_stand_in_the_order_in_which_they_run() -> None:
    assert [part.title for part in outline(create_model("RKCNN-R-2_2_2@k=4"), 8).parts] == [
        "preprocessor",
        "period 1",
        "transition 1",
        "period 2",
        "transition 2",
        "period 3",
        "postprocessor, readout 1",
        "postprocessor, readout 2",
        "postprocessor, readout 3",
        "postprocessor, classifier",
    ]


@pytest.mark.parametrize(("name", "shown"), [("ResNet@k=4,r=3", 3), ("ResNet@k=4,r=4", 1), ("ResNet@k=4,r=9", 1)])
def test_four_equal_neighbours_are_one_line(name: str, shown: int) -> None:
    steps = outline(create_model(name), 28).parts[1].parts
    assert len(steps) == shown
    assert sum(step.count for step in steps) == int(name[-1])


@pytest.mark.parametrize(("name", "halves"), [("Hamiltonian@k=4", True), ("MomentumResNet-101", False)])
def test_half_steps_are_the_hamiltonians_alone(name: str, halves: bool) -> None:
    titles = [part.title for part in walk(outline(create_model(name), 32))]
    assert ("half-step of z" in titles) == halves
