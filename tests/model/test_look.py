"""Looks that are chosen by hand, and those that are found for the rest."""

from __future__ import annotations

from rkcnn.model.families import LOOKS
from rkcnn.model.look import BLUE, COLOURS, MARKERS, OTHER, STRANGERS, Look, choose_looks, look_of_stranger


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
    assert not {look.marker for look in STRANGERS} & {look.marker for look in LOOKS.values()}
    names = ("Mine", "Yours", "Heun", "Verlet", "MyStep")
    assert len({look_of_stranger(name) for name in names}) >= 4
    assert look_of_stranger("Mine") == look_of_stranger("Mine")
