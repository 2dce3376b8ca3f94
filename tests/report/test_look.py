"""Families can be told apart with colour and without."""

from __future__ import annotations

from itertools import combinations

from rkcnn.record.tables import TABLES
from rkcnn.report.look import look_of
from rkcnn.report.view import family_of

FAMILIES = sorted({family_of(spec) for table in TABLES.values() for spec in table.specs})


def test_no_two_families_share_a_marker() -> None:
    for one, two in combinations(FAMILIES, 2):
        assert look_of(one).marker != look_of(two).marker, (one, two)


def test_the_three_of_the_paper_differ_in_colour() -> None:
    assert len({look_of(f"RKCNN-{kind}").colour for kind in "EIR"}) == 3


def test_a_family_nobody_thought_of_has_a_look() -> None:
    assert look_of("Mine").marker not in {look_of(family).marker for family in FAMILIES}
