"""A family from outside the package is known by its name as any other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rkcnn.error import InputError
from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.model.families import FAMILIES, LOOKS, Family, Variant
from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep, step_diagram
from rkcnn.model.register import register
from rkcnn.model.spec import ModelSpec, parse
from rkcnn.model.steps.resnet import residual


class Half(Period):
    """y' = y + F(y) / 2, r times."""

    def __init__(self, spec: ModelSpec, index: int, layers: Layers) -> None:
        super().__init__(transition_channels=spec.k[index])
        self.steps = nn.ModuleList(residual(spec.k[index], layers) for _ in range(spec.r[index]))
        self.evaluations = spec.r[index]

    def walk(self, y: Tensor) -> Iterator[TimeStep]:
        for step in self.steps:
            e = step(y) / 2
            y = y + e
            yield TimeStep(y, (e,))


HALF = Family("Half", about="half of a residual step", period=Half)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    """Only the families of the package are known before and after."""
    before, looks = dict(FAMILIES), dict(LOOKS)
    yield
    FAMILIES.clear()
    FAMILIES.update(before)
    LOOKS.clear()
    LOOKS.update(looks)


def test_its_networks_are_built_by_name() -> None:
    with pytest.raises(InputError, match="no family 'half'"):
        create_model("half@k=8")
    register(HALF)
    torch.manual_seed(0)
    network = create_model("half@k=8,r=2", classes=3, channels=1)
    assert network.name == "Half@k=8,r=2"
    assert network(torch.randn(2, 1, 28, 28)).shape == (2, 3)
    assert cost(network, 28).evaluations == 2
    assert len(network.trajectory(torch.randn(2, 1, 28, 28))[0].y) == 3
    assert step_diagram(parse("Half@k=8")).title == "Half@k=8"


def test_it_halves_the_step_of_resnet() -> None:
    register(HALF)
    half, whole = create_model("Half@k=8", channels=1), create_model("ResNet@k=8", channels=1)
    whole.load_state_dict(half.state_dict())
    images = torch.randn(2, 1, 28, 28)
    one, other = (network.eval().trajectory(images)[0].e[0][0] for network in (half, whole))
    torch.testing.assert_close(2 * one, other)


def test_it_has_a_look_of_its_own_and_changes_no_other() -> None:
    before = dict(LOOKS)
    register(HALF)
    assert LOOKS["Half"][:2] not in {look[:2] for look in before.values()}
    assert {title: LOOKS[title] for title in before} == before


def test_it_can_be_registered_again() -> None:
    register(HALF)
    register(Family("half", about="the same, written again", period=Half))
    assert [name for name in FAMILIES if name.lower() == "half"] == ["half"]


@pytest.mark.parametrize(
    ("family", "message"),
    [
        (Half, r"register takes a Family, as in Family\('Mine', about='...', period=Mine\)"),
        (Family("resnet", about="", period=Half), "rkcnn has a family ResNet of its own; give yours another name"),
        (Family("My-step", about="", period=Half), "'My-step'; it is made of letters and digits and starts with one"),
        (Family("Mine", about="", period=nn.Module), r"a class that inherits from rkcnn\.model\.period\.Period"),
        (Family("Mine", about="", period="steps.resnet:ResNet"), "must be a class that inherits"),
        (
            Family("Mine", about="", period=Half, variants={"": Variant(options={"depth": 2})}),
            "Mine: no option 'depth'; options of names are stem, norm",
        ),
    ],
)
def test_what_is_no_family_is_refused(family: Any, message: str) -> None:
    before = list(FAMILIES)
    with pytest.raises(InputError, match=message):
        register(family)
    assert list(FAMILIES) == before
