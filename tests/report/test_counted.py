"""What is written down is what the networks have."""

from __future__ import annotations

import pytest

from rkcnn.model.create import create_model
from rkcnn.record.tables import TABLES
from rkcnn.report.counted import COUNTED


def test_every_network_of_the_table_is_counted() -> None:
    assert tuple(COUNTED) == TABLES["sota-mnist"].specs


@pytest.mark.parametrize("name", COUNTED)
def test_the_networks_have_so_many(name: str) -> None:
    assert sum(weight.numel() for weight in create_model(name, channels=1).parameters()) == COUNTED[name]
