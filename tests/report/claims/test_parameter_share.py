"""A claim about parameters needs no run."""

from __future__ import annotations

import pytest

from rkcnn.model.create import create_model
from rkcnn.record.tables import TABLES
from rkcnn.report.claims.claims import CLAIMS
from rkcnn.report.claims.parameter_share import COUNTED, judge_share

(CLAIM,) = (claim for claim in CLAIMS if claim.kind == "share")


def test_shares_of_parameters() -> None:
    found = judge_share(CLAIM, COUNTED)
    assert found.heading == "close (19.6 to 37.6 % as counted)"
    assert "prints 0.22 M for networks of 208,266" in found.why
    assert judge_share(CLAIM, {**COUNTED, "RKCNN-I-2@k=32": 120_000}).verdict == "contradicted"


def test_the_claimed_percentages_support_it() -> None:
    params = {**COUNTED, "RKNet-64": 220_000, "ODENet-64": 220_000, "RKCNN-E-2@k=32": 60_000}
    assert judge_share(CLAIM, params).heading == "supported (21.2 to 35.6 % as counted)"


def test_every_network_of_the_table_is_counted() -> None:
    assert tuple(COUNTED) == TABLES["sota-mnist"].specs


@pytest.mark.parametrize("name", COUNTED)
def test_the_networks_have_so_many(name: str) -> None:
    assert sum(weight.numel() for weight in create_model(name, channels=1).parameters()) == COUNTED[name]
