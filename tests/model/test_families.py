"""Families and published originals."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from itertools import combinations
from pathlib import Path

import pytest
import torch
from safetensors.torch import save
from torch import nn

from rkcnn.error import InputError
from rkcnn.model.create import create_model
from rkcnn.model.families import FAMILIES, LOOKS, OPTIONS, ORIGINALS, Family, options_of, title_of
from rkcnn.model.network import Published
from rkcnn.model.period import Period, load_class
from rkcnn.model.spec import ModelSpec
from rkcnn.solvers.methods import METHOD_NAMES
from zoo import ZOO

each = pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)


@each
def test_an_entry_names_a_period(family: Family) -> None:
    assert issubclass(load_class(family.period), Period)


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
        assert variant.steps is None or variant.steps >= variant.least_steps[0]


def test_options_by_hand() -> None:
    frame = {"stem": "odenet", "norm": "paper"}
    assert options_of(FAMILIES["ResNet"], "bottleneck", 1) == frame
    assert options_of(FAMILIES["RKCNN"], "E", 1) == {**frame, "merge": "sum"}
    phase_2 = {"merge": "sum", "sweeps": 1, "y": True, "shared": False}
    assert options_of(FAMILIES["RKCNN"], "R", 1) == {**frame, **phase_2}
    several = {"stem": "conv", "norm": "paper", "attention": True, "multiscale": True}
    assert options_of(FAMILIES["ODENet"], "abm", 3) == {**several, "tol": 0.9, "converge": "batch", "adjoint": False}
    assert options_of(FAMILIES["RKNet"], "radau3", 1) == {**frame, "tol": 0.5}
    solved = {"adjoint": False, "statistics": "shared"}
    assert options_of(FAMILIES["ANODE"], "dopri5", 1) == {**frame, **solved, "tol": None, "p": 1}
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


def test_the_page_of_names_has_every_family_option_and_original() -> None:
    page = (Path(__file__).parents[2] / "docs" / "names.md").read_text(encoding="utf-8").replace("×", "x")
    for family in FAMILIES.values():
        row = "".join(re.findall(rf"^[|] `{family.name}` [|].*$", page, re.MULTILINE))
        assert row, f"docs/names.md needs a row for {family.name} in its table of families"
        named = [variant for variant in family.variants if variant and variant not in METHOD_NAMES]
        assert all(f"`{variant}`" in row for variant in named)
    for name, option in OPTIONS.items():
        row = "".join(re.findall(rf"^[|] `{name}` [|].*$", page, re.MULTILINE))
        assert row, f"docs/names.md needs a row for {name} in its table of options"
        assert all(f"`{choice}`" in row for choice in option.choices)
        assert all(part in row for part in re.split(r"(?:, or|: )", option.about)), option.about
    assert all(f"`{name}`" in page for name in (*METHOD_NAMES, *ORIGINALS))


def test_reading_names_loads_no_torch() -> None:
    code = "import rkcnn.model.spec, rkcnn.model.families, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


BUILT = [name for name, original in ORIGINALS.items() if original.network]


@pytest.mark.parametrize("name", BUILT)
def test_the_smallest_image_trains_alone_and_one_less_is_refused(name: str) -> None:
    """ResNet-1001 in full, so that a thousand layers are seen to carry a gradient."""
    torch.manual_seed(0)
    network = create_model(name, classes=7, channels=2).train()
    assert isinstance(network, Published)
    out = network(torch.randn(2, 2, network.smallest, network.smallest))
    assert out.shape == (2, 7)
    nn.functional.cross_entropy(out, torch.tensor([0, 1])).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
    assert save(network.state_dict())
    with pytest.raises(InputError, match="has no time-steps"):
        network.trajectory(torch.randn(1, 2, 32, 32))
    with pytest.raises(InputError, match="smallest it can take is"):
        network(torch.randn(1, 2, network.smallest - 1, network.smallest))


@pytest.mark.parametrize("name", BUILT)
def test_dropout_reaches_the_blocks_and_not_the_stem(name: str) -> None:
    with torch.device("meta"):
        network = create_model(name, dropout=0.2)
    rates = {path: module.dropout for path, module in network.named_modules() if hasattr(module, "dropout")}
    assert len(rates) > 10
    assert set(rates.values()) == {0.2}
    assert not any(path.startswith("stem") for path in rates)
