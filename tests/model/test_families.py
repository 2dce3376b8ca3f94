"""The families' entries agree with the classes that they name, with the grammar and with each other."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from itertools import combinations

import pytest

from rkcnn.model.families import FAMILIES, LOOKS, OPTIONS, Family, options_of, title_of
from rkcnn.model.period import Period, period_class
from rkcnn.model.spec import ModelSpec
from zoo import ZOO

each = pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)


@each
def test_an_entry_names_a_period(family: Family) -> None:
    assert issubclass(period_class(family.name), Period)


@each
def test_every_family_is_in_the_zoo(family: Family) -> None:
    assert any(name.partition("@")[0].split("-")[0] == family.name for name in ZOO)


def test_a_specification_has_every_option() -> None:
    assert {field.name for field in fields(ModelSpec)} == {"family", "variant", "stages", "k", "r", *OPTIONS}


@each
def test_options_are_those_of_the_grammar_in_its_order(family: Family) -> None:
    for periods in (1, 3):
        for variant in family.variants:
            found = list(options_of(family, variant, periods))
            assert found == [name for name in OPTIONS if name in found]


@each
def test_a_variant_starts_with_enough_steps(family: Family) -> None:
    for variant in family.variants.values():
        assert variant.steps is None or variant.steps >= variant.least_steps.number


def test_options_by_hand() -> None:
    frame = {"stem": "odenet", "norm": "paper"}
    assert options_of(FAMILIES["ResNet"], "bottleneck", 1) == frame
    assert options_of(FAMILIES["RKCNN"], "E", 1) == {**frame, "merge": "sum"}
    phase_2 = {"merge": "sum", "sweeps": 1, "y": True, "shared": False}
    assert options_of(FAMILIES["RKCNN"], "R", 1) == {**frame, **phase_2}
    several = {"stem": "conv", "norm": "paper", "attention": True, "multiscale": True}
    assert options_of(FAMILIES["ODENet"], "abm", 3) == {**several, "tol": 0.9, "converge": "batch", "adjoint": False}
    assert options_of(FAMILIES["RKNet"], "radau3", 1) == {**frame, "tol": 0.5}
    assert options_of(FAMILIES["ANODE"], "dopri5", 1) == {**frame, "tol": None, "adjoint": False, "p": 1}
    assert options_of(FAMILIES["Momentum"], "", 1) == {**frame, "v0": "zero"}


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("RKCNN-I-2_2_2@k=120", "RKCNN-I"),
        ("RKNet-rk4_38@k=32", "RK-Net"),
        ("ODENet", "ODE-Net"),
        ("ResNet-bottleneck@k=32", "ResNet"),
        ("CliqueNet-2@k=32", "CliqueNet"),
        ("Momentum@k=8", "Momentum ResNet"),
        ("Unknown-3@k=8", "Unknown"),
    ],
)
def test_titles(head: str, title: str) -> None:
    assert title_of(head) == title


def test_every_title_has_a_look_of_its_own() -> None:
    titles = {title_of(f"{family.name}-{variant}") for family in FAMILIES.values() for variant in family.variants}
    assert set(LOOKS) == titles
    for one, two in combinations(LOOKS, 2):
        assert LOOKS[one][:2] != LOOKS[two][:2], (one, two)


def test_reading_names_loads_no_torch() -> None:
    code = "import rkcnn.model.spec, rkcnn.model.published.originals, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
