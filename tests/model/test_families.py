"""The families' data agree with what builds them."""

from __future__ import annotations

import pytest

from rkcnn.model.families import CHOICES, COUNTS, FAMILIES, SWITCHES, Family, options_of
from rkcnn.model.network import PERIODS
from rkcnn.model.spec import OPTIONS


def test_every_family_is_built_and_every_period_has_a_family() -> None:
    assert set(PERIODS) == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_every_option_can_be_read(family: Family) -> None:
    readable = {*CHOICES, *SWITCHES, *COUNTS, "tol"}
    assert readable == set(OPTIONS)
    for periods in (1, 3):
        for variant in family.variants:
            assert set(options_of(family, variant, periods)) <= readable
