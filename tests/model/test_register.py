"""Families and Runge–Kutta methods from outside the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rkcnn
from registered import METHOD_FAMILIES, forgotten, variants_of
from rkcnn.error import InputError
from rkcnn.model.cost import cost
from rkcnn.model.create import create_model
from rkcnn.model.families import FAMILIES, LOOKS, Family, Variant
from rkcnn.model.layers import Layers
from rkcnn.model.period import Period, TimeStep, step_diagram
from rkcnn.model.register import register
from rkcnn.model.spec import ModelSpec, parse
from rkcnn.model.steps.resnet import residual
from rkcnn.record.source import is_current_code, source_hash, training_hash
from rkcnn.solvers.methods import EMBEDDED, IMPLICIT, METHOD_NAMES
from rkcnn.solvers.tableau import Tableau


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
    """Only the families and methods of the package are known before and after."""
    with forgotten():
        yield


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
        (Half, r"register takes a Family, as in Family\('Mine', about='...', period=Mine\), or a Tableau"),
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


RALSTON = Tableau("ralston", 2, a=((0, 0), (2 / 3, 0)), b=(1 / 4, 3 / 4), c=(0, 2 / 3))
SDIRP = Tableau("implicit_euler", 1, a=((1,),), b=(1,), c=(1,))
PAIR = Tableau("heun_euler", 2, a=((0, 0), (1, 0)), b=(1 / 2, 1 / 2), c=(0, 1), embedded=(1, 0), embedded_order=1)


@pytest.mark.parametrize("family", METHOD_FAMILIES)
@pytest.mark.parametrize("method", [RALSTON, SDIRP, PAIR], ids=lambda method: method.name)
def test_a_method_makes_networks_by_name(family: str, method: Tableau) -> None:
    with pytest.raises(InputError, match=f"variant '{method.name}' given"):
        create_model(f"{family}-{method.name}@k=4")
    register(method)
    torch.manual_seed(0)
    network = create_model(f"{family.lower()}-{method.name.upper()}@k=4", classes=3, channels=1)
    assert network.name == f"{family}-{method.name}@k=4"
    network(torch.randn(2, 1, 28, 28)).sum().backward()
    assert all(weight.grad is not None for weight in network.parameters())
    assert step_diagram(parse(network.name)).title == network.name
    assert cost(network, 28).evaluations == method.stages + (method.kind != "explicit"), "the fewest, if implicit"


def test_its_step_is_what_the_tableau_says() -> None:
    register(RALSTON)
    torch.manual_seed(0)
    network = create_model("RKNet-ralston@k=4", channels=1).eval()
    (states,) = (found.y for found in network.trajectory(torch.randn(2, 1, 28, 28)))
    f = network.get_submodule("periods.0.f")
    first = f(0.0, states[0])
    second = f(2 / 3, states[0] + 2 / 3 * first)
    torch.testing.assert_close(states[1], states[0] + first / 4 + 3 / 4 * second)


def test_a_method_is_solved_evaluated_and_recorded(tmp_path: Path) -> None:
    register(RALSTON)
    found = rkcnn.solve(lambda t, y: -y, torch.ones(1), [0.0, 1.0], "ralston", steps=20)
    torch.testing.assert_close(found.ys[-1], torch.exp(torch.tensor([-1.0])), atol=1e-3, rtol=0)
    settings: dict[str, Any] = {"epochs": 1, "max_steps_per_epoch": 2, "out": tmp_path, "progress": False}
    result = rkcnn.train("RKNet-ralston@k=4", **settings)
    (stretch,) = result.stretches
    assert stretch.source == training_hash("RKNet-ralston@k=4") != source_hash()
    assert rkcnn.evaluate(result, method="ralston").error == result.error
    register(Tableau("ralston", 2, a=((0, 0), (1, 0)), b=(1 / 2, 1 / 2), c=(0, 1)))
    assert not is_current_code(stretch.source, "RKNet-ralston@k=4")
    assert is_current_code(source_hash(), "RKNet-rk4_38@k=4")


def test_a_method_can_be_registered_again() -> None:
    register(PAIR)
    register(Tableau("heun_euler", 1, a=((1,),), b=(1,), c=(1,)))
    assert (METHOD_NAMES.count("heun_euler"), EMBEDDED.count("heun_euler"), IMPLICIT.count("heun_euler")) == (1, 0, 1)
    assert parse("RKNet-heun_euler@k=4").tol == 0.5


def test_weights_of_a_method_that_is_not_registered_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(RALSTON)
    settings: dict[str, Any] = {"epochs": 1, "max_steps_per_epoch": 1, "out": tmp_path, "progress": False}
    result = rkcnn.train("RKNet-ralston@k=4", **settings)
    monkeypatch.delitem(variants_of("RKNet"), "ralston")
    with pytest.raises(InputError, match=r"variant 'ralston' given.*must be registered first, .*rkcnn\.register"):
        rkcnn.load(result.folder)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rk4", "rkcnn has a method rk4 of its own; give yours another name"),
        ("abm", "rkcnn has a method abm of its own"),
        ("Ralston's", "the tableau's name is \"Ralston's\"; it is made of small letters, digits and _"),
        ("", "the tableau's name is ''"),
        (3, "the tableau's name is 3"),
    ],
)
def test_a_name_that_no_network_can_have_is_refused(name: Any, message: str) -> None:
    before = list(METHOD_NAMES)
    with pytest.raises(InputError, match=message):
        register(Tableau(name, 1, a=((0,),), b=(1,), c=(0,)))
    assert before == METHOD_NAMES
