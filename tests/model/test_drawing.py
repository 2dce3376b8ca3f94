"""Diagrams of time-steps, and the looks of networks in figures."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rkcnn.model.create import create_model
from rkcnn.model.drawing import (
    BLUE,
    COLOURS,
    MARKERS,
    OTHER,
    UNKNOWN_FAMILY_LOOKS,
    Diagram,
    Look,
    choose_looks,
    look_of_unknown_family,
)
from rkcnn.model.families import FAMILIES, LOOKS
from rkcnn.model.period import step_diagram
from rkcnn.model.spec import parse
from rkcnn.model.stage import Stage
from rkcnn.solvers.methods import METHOD_NAMES

EVERY = [
    f"{'-'.join(filter(None, (family.name, variant, '3' * family.staged)))}@k=4"
    for family in FAMILIES.values()
    for variant in family.variants
]


def reads(name: str) -> list[list[str]]:
    return [list(column.reads) for column in step_diagram(parse(name)).columns]


def test_one_sweep_by_hand() -> None:
    first = [["y"], ["y", "x1"], ["y", "x1", "x2"]]
    assert reads("RKCNN-E-3@k=4") == [*first, ["y", "x1", "x2", "x3"]]
    assert reads("DenseNet-3@k=4") == reads("RKCNN-E-3@k=4")
    newest = [["y", "x2", "x3"], ["y", "e1", "x3"], ["y", "e1", "e2"]]
    guesses = [["y", "x2", "x3"], ["y", "x1", "x3"], ["y", "x1", "x2"]]
    end = ["y", "e1", "e2", "e3"]
    assert reads("RKCNN-I-3@k=4") == [*first, *newest, end]
    assert reads("RKCNN-R-3@k=4") == [*first, *guesses, end]
    assert reads("CliqueNet-3@k=4") == [*first, *([x for x in seen if x != "y"] for seen in newest), end]
    assert reads("RKCNN-I-3@k=4,y=off") == reads("CliqueNet-3@k=4")


def test_a_second_sweep_reads_the_first() -> None:
    assert reads("RKCNN-R-2@k=4,sweeps=2")[4:] == [["y", "e2"], ["y", "e1"], ["y", "e1′", "e2′"]]
    assert reads("RKCNN-I-2@k=4,sweeps=2")[4:] == [["y", "e2"], ["y", "e1′"], ["y", "e1′", "e2′"]]
    phases = [title for title, _, _ in step_diagram(parse("RKCNN-R-2@k=4,sweeps=2")).phases]
    assert phases == ["Phase I", "Phase II, sweep 1", "Phase II, sweep 2"]


@pytest.mark.parametrize("name", ["RKCNN-E-4@k=4", "RKCNN-I-3@k=4", "RKCNN-R-4@k=4", "RKCNN-R-3@k=4,y=off"])
def test_a_stage_has_room_for_what_its_column_reads(name: str) -> None:
    stages = [module for module in create_model(name).modules() if isinstance(module, Stage)]
    assert [4 * len(column) for column in reads(name)[:-1]] == [stage.narrow.in_channels for stage in stages]


@pytest.mark.parametrize("name", EVERY)
def test_a_column_reads_lanes_that_are_there(name: str) -> None:
    diagram = step_diagram(parse(name))
    together = {i for title, first, last in diagram.phases if "Phase" not in title for i in range(first, last + 1)}
    there = set(diagram.lanes) - {column.writes for column in diagram.columns}
    assert "y" in there
    for i, column in enumerate(diagram.columns):
        assert set(column.reads) <= (set(diagram.lanes) if i in together else there), column
        there.add(column.writes)
    assert diagram.columns[-1].writes == "y'"
    assert len(diagram.lanes) == len(set(diagram.lanes))


def increments(diagram: Diagram) -> list[list[float]]:
    """The weights of f in every column that sums them up to a whole step."""
    last = [column for column in diagram.columns if column.label in ("+", "predict", "correct")]
    return [[float(Fraction(weight)) for weight in column.reads.values() if weight] for column in last]


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_the_weights_of_a_step_sum_to_one(method: str) -> None:
    family = "ODENet" if method in ("ab", "abm") else "RKNet"
    for weights in increments(step_diagram(parse(f"{family}-{method}@k=4"))):
        assert sum(weights) == pytest.approx(1, abs=0.01)  # three digits each


def test_the_paper_s_solvers_by_hand() -> None:
    third = [column.reads for column in step_diagram(parse("RKNet-rk4_38@k=4")).columns]
    assert third == [
        {"y": ""},
        {"y": "", "z1": "1/3"},
        {"y": "", "z1": "-1/3", "z2": "1"},
        {"y": "", "z1": "1", "z2": "-1", "z3": "1"},
        {"y": "", "z1": "1/8", "z2": "3/8", "z3": "3/8", "z4": "1/8"},
    ]
    correct = step_diagram(parse("ODENet-abm@k=4")).columns[-1].reads
    assert correct == {"y": "", "f(n+1)": "3/8", "f(n)": "19/24", "f(n-1)": "-5/24", "f(n-2)": "1/24"}


def test_a_note_says_what_y_is_where_it_is_more() -> None:
    assert "velocity" in step_diagram(parse("SONODE@k=4")).note
    assert "3 more channels" in step_diagram(parse("ANODE@k=4,p=3")).note
    assert "1 more channel," in step_diagram(parse("ANODE-ab@k=4")).note


def test_a_chosen_look_is_kept_and_no_other_gets_it() -> None:
    mine = Look(COLOURS[0], MARKERS[0], 9)
    found = choose_looks({"a": None, "b": mine, "c": None})
    assert found["b"] is mine
    assert len({look[:2] for look in found.values()}) == 3


def test_there_are_looks_for_many() -> None:
    many = choose_looks({str(n): None for n in range(len(COLOURS) * len(MARKERS))})
    assert len({look[:2] for look in many.values()}) == len(many)
    assert OTHER not in many.values()


def test_when_all_are_taken_the_rest_look_alike() -> None:
    many = choose_looks({str(n): None for n in range(len(COLOURS) * len(MARKERS) + 2)} | {"mine": Look(BLUE, "o")})
    assert many["mine"] == Look(BLUE, "o")
    assert list(many.values()).count(OTHER) == 3


def test_families_that_are_not_known_look_like_none_that_is_and_mostly_differ() -> None:
    assert not {look.marker for look in UNKNOWN_FAMILY_LOOKS} & {*MARKERS, *(look.marker for look in LOOKS.values())}
    names = ("Mine", "Yours", "Heun", "Verlet", "MyStep")
    assert len({look_of_unknown_family(name) for name in names}) >= 4
    assert look_of_unknown_family("Mine") == look_of_unknown_family("Mine")
