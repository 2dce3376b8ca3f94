"""What code writes into the README and the docs is what the code gives now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rkcnn.error import InputError
from rkcnn.report.paper import slip_table
from rkcnn.report.readme import END, START, between, cost_table

ROOT = Path(__file__).parents[2]


def test_the_cost_table_is_current(rows: list[dict[str, Any]]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert between(readme, cost_table(rows)) == readme, "run python -m rkcnn.report.readme"


def test_the_table_of_slips_is_current() -> None:
    assert slip_table() in (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")


def test_only_what_stands_between_the_markers_changes() -> None:
    text = f"before\n{START}\nold\n{END}\nafter"
    assert between(text, "new") == f"before\n{START}\nnew\n{END}\nafter"
    with pytest.raises(InputError, match="lacks"):
        between("no markers", "new")
