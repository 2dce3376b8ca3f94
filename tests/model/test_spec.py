"""Names: what they mean, and that they come back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.error import InputError
from rkcnn.model.families import FAMILIES, OPTIONS, options_of
from rkcnn.model.spec import ModelSpec, depends_on_data, parse
from rkcnn.record.tables import list_models


@st.composite
def specs(draw: st.DrawFn) -> ModelSpec:
    """Any network that the grammar can say."""
    family = FAMILIES[draw(st.sampled_from(sorted(FAMILIES)))]
    variant = draw(st.sampled_from(sorted(family.variants)))
    traits = family.variants[variant]
    periods = draw(st.integers(1, 4))

    def numbers(least: int, factor: int = 1) -> tuple[int, ...]:
        return tuple(factor * n for n in draw(st.lists(st.integers(least, 9), min_size=periods, max_size=periods)))

    values: dict[str, Any] = {}
    for name in options_of(family, variant, periods):
        if draw(st.booleans()):
            continue
        kinds = {
            "choice": st.sampled_from(OPTIONS[name].choices or ("",)),
            "switch": st.booleans(),
            "count": st.integers(1, 5),
            "tolerance": st.floats(1e-9, 10),
        }
        values[name] = draw(kinds[OPTIONS[name].kind])
    if values.get("statistics") == "each" and (values.get("tol") or values.get("adjoint")):
        values["statistics"] = "shared"
    elif values.get("statistics") == "each" and (periods == 1 or values.get("norm") == "gn"):
        values["norm"] = "bn"
    single = values.get("merge") == "concat" or (variant in ("dopri5", "tsit5") and "tol" in values)
    if traits.steps is not None and not single and draw(st.booleans()):
        values["r"] = numbers(traits.least_steps[0])
    stages = numbers(traits.least_stages[0]) if family.staged else ()
    return ModelSpec(family.name, variant, stages, numbers(1, factor=4), **values)


@given(specs())
def test_a_name_comes_back(spec: ModelSpec) -> None:
    assert parse(str(spec)) == spec
    assert parse(str(spec).upper()) == spec
    assert str(parse(str(spec).lower())) == str(spec)


@pytest.mark.parametrize("name", [name for name in list_models() if "@" in name])
def test_the_papers_names_are_canonical(name: str) -> None:
    assert str(parse(name)) == name


def test_one_number_stands_for_all_periods_and_the_longest_list_counts_them() -> None:
    assert parse("RKCNN-I-2_2_2@k=120") == parse("RKCNN-I-2@k=120_120_120") == parse("RKCNN-I-2@k=120,r=1_1_1")
    assert parse("ResNet@k=8,r=1_2_3").periods == 3
    assert parse("RKCNN-I-5_5_6@k=150_120_120").k == (150, 120, 120)


def test_equal_networks_have_equal_names() -> None:
    assert str(parse("RKCNN-R-2@norm=paper,stem=odenet,k=32,sweeps=1,merge=sum")) == "RKCNN-R-2@k=32"
    assert str(parse("SONODE-rk4_38@k=32,adjoint=off")) == "SONODE@k=32"
    assert str(parse("ResNet@k=32,norm=gn")) == "ResNet@k=32"
    assert str(parse("RKCNN-R-2_2@k=32,norm=bn")) == "RKCNN-R-2_2@k=32"
    assert str(parse("RKCNN-R-2@k=32,norm=bn")) == "RKCNN-R-2@k=32,norm=bn"
    assert parse("RKCNN-R-2@k=32") != parse("RKCNN-R-2@k=32,sweeps=2")


def test_only_a_similar_family_is_suggested() -> None:
    for word, meant in {
        "Resnett": "ResNet",
        "RKCM": "RKCNN",
        "NODENet": "ODENet",
        "ODE": "ODENet",
        "Clique": "CliqueNet",
    }.items():
        with pytest.raises(InputError, match=rf"did you mean {meant}\?"):
            parse(f"{word}@k=4")
    for word in ("nonsense", "NoNet", "x"):
        with pytest.raises(InputError, match=rf"no family '{word}'; families are"):
            parse(word)


def test_a_tolerance_makes_costs_depend_on_the_data() -> None:
    for name in ("RKNet-radau3@k=32", "ODENet-abm@k=32", "RKNet-dopri5@k=4,tol=0.1", "ODENet-64"):
        assert depends_on_data(name)
    for name in ("ODENet-ab@k=32", "RKNet-dopri5@k=4", "ResNet-1001", "RKCNN-I-2@k=4", "Unknown-2@k=3"):
        assert not depends_on_data(name)


def test_defaults_follow_the_frame() -> None:
    one, three = parse("ODENet-abm@k=32"), parse("ODENet-abm@k=120_120_120")
    assert (one.stem, one.tol, one.r, one.attention) == ("odenet", 0.5, (3,), None)
    assert (three.stem, three.tol, three.r, three.attention) == ("conv", 0.9, (3, 3, 3), True)
    assert parse("ODENet-ab@k=32").r == (4,)
    assert parse("Momentum@k=32").r == (2,)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("RKCN-I-2@k=32", "did you mean RKCNN?"),
        ("@k=32", "a name is needed"),
        ("RKCNN-I-2_x@k=32", "whole numbers with _ between them"),
        ("RKCNN-I-2_2_2@k=1_2", "give 1 or 3"),
        ("RKCNN-I-2@k=32_", "whole numbers with _ between them"),
        ("RKCNN-I-1@k=32", "Phase II renews each stage from the others"),
        ("RKCNN-R-2_1@k=32", "needs at least 2 stages"),
        ("CliqueNet-1@k=32", "needs at least 2 stages"),
        ("RKCNN-E-0@k=32", "at least 1"),
        ("RKCNN-2@k=32", "-E, -I, -R"),
        ("RKCNN-X-2@k=32", "-E, -I, -R"),
        ("RKCNN-I@k=32", "RKCNN-I-2_2_2@k=32"),
        ("ResNet-2@k=32", "has no stages"),
        ("ResNet@k=0", "at least 1 channel"),
        ("ResNet", "no k given"),
        ("ResNet-bottleneck@k=30", "multiple of 4"),
        ("Hamiltonian@k=31", "multiple of 2"),
        ("ResNet@k=32,deep=2", "no option deep"),
        ("ResNet@k=32,sweeps=2", "has no option sweeps; it takes k, r, stem, norm"),
        ("RKCNN-E-2@k=32,sweeps=2", "has no option sweeps"),
        ("ResNet@k=32,attention=off", "one period has no option attention"),
        ("ResNet@k=32,norm=ln", "norm is one of paper, bn, gn"),
        ("RKCNN-I-2@k=32,y=maybe", "y is on or off"),
        ("RKCNN-I-2@k=32,sweeps=0", "at least 1"),
        ("ResNet@k=32,k=16", "given twice"),
        ("ResNet@k=32,norm", "name=value"),
        ("ODENet-ab@k=32,r=2", "there would be no Adams step"),
        ("ODENet-abm@k=32,r=1", "needs r >= 3"),
        ("SONODE-ab@k=32,r=2", "needs r >= 3"),
        ("SONODE-euler@k=32,r=1", "so f has no effect"),
        ("Momentum@k=32,r=1", "scaled residual block"),
        ("LM@k=32,r=1", "needs r >= 2"),
        ("Leapfrog@k=32,r=1", "needs r >= 2"),
        ("Midpoint@k=32,r=1", "needs r >= 2"),
        ("ResNet@k=32,r=0", "needs r >= 1"),
        ("DenseNet-2@k=32,r=2", "has no time-steps"),
        ("RKCNN-I-2@k=32,merge=concat,r=2", "r must be 1"),
        ("RKNet-dopri5@k=32,tol=0.1,r=2", "leave r out"),
        ("RKNet-radau3@k=32,tol=-1", "positive number"),
        ("RKNet-radau3@k=32,tol=small", "a tolerance is a number"),
        ("RKNet-radau4@k=32", "did you mean radau"),
        ("RKNet-rk4@k=32,statistics=each", "f has group norm, which has no running statistics; write norm=bn"),
        ("RKNet-dopri5@k=8_8,tol=0.1,statistics=each", "how often f is evaluated; leave one of the two out"),
        ("ODENet-ab@k=8_8,adjoint=on,statistics=each", "once, at the solution; leave one of the two out"),
        ("ODENet-abm@k=8_8,statistics=each", "has no option statistics"),
    ],
)
def test_bad_names_get_one_clear_sentence(name: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(name)
    message = str(caught.value)
    assert says in message
    assert "\n" not in message


@given(st.text(max_size=40) | st.from_regex(r"(?i)rkcnn-[eir]-[0-9_]*@k=[0-9_,a-z=.]*", fullmatch=True))
def test_any_text_is_a_network_or_one_clear_error(text: str) -> None:
    try:
        spec = parse(text)
    except InputError:
        return
    assert parse(str(spec)) == spec
