"""The JSON file of a checkpoint: read as it was written, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.fit.checkpoint_file import read_facts, seal_facts

FACTS = {
    "schema": 3,
    "identity": {"network": "RKCNN-R-2@k=4", "seed": 3},
    "epoch": 2,
    "step": 7,
    "seconds": 1.5,
    "solver_stats": [[4, 0, 0.5, 1, 2]],
    "history": {"loss": [0.25, 0.125]},
    "sha256": "0" * 64,
}


def test_facts_come_back(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    path.write_bytes(seal_facts(FACTS))
    assert read_facts(path) == FACTS


@given(st.data())
def test_a_changed_character_is_noticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = seal_facts(FACTS)
    place = data.draw(st.integers(0, len(content) - 1))
    changed = content[:place] + data.draw(st.binary(max_size=1)) + content[place + 1 :]
    path = tmp_path_factory.getbasetemp() / "changed.json"
    path.write_bytes(changed)
    try:
        assert read_facts(path) == FACTS  # blanks between values may change, and nothing else
    except (ValueError, KeyError, TypeError):
        assert changed != content


@pytest.mark.parametrize("gone", ["check", *FACTS])
def test_without_a_field_it_is_refused(tmp_path: Path, gone: str) -> None:
    facts = json.loads(seal_facts({name: value for name, value in FACTS.items() if name != gone}))
    if gone == "check":
        del facts["check"]
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps(facts))
    with pytest.raises((KeyError, TypeError)):
        read_facts(path)
