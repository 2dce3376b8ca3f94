"""Records of memory on disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from footprints import taken
from rkcnn.error import InputError
from rkcnn.record.memory import memory_path, read_memories, read_memory


def test_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_bytes(taken("ResNet@k=32").to_json())
    assert read_memory(path) == taken("ResNet@k=32")


def test_it_lies_beside_the_networks_runs() -> None:
    assert memory_path(Path("out"), "mnist", "a/b@k=3,r=2") == Path("out/mnist/a~b@k=3,r=2/memory.json")


def test_above_another_only_where_the_contexts_are_alike() -> None:
    one, other = taken("ResNet@k=32", driver=620), taken("Identity@k=32", driver=612)
    assert one.above(other) == 8 << 20
    for change in ({"gpu": "NVIDIA A100"}, {"counted": "process"}, {"versions": {**one.versions, "torch": "3"}}):
        assert one.above(replace(other, **change)) is None


@pytest.mark.parametrize("change", [{"driver_bytes": "600"}, {"gpu": None}, {"more": 1}, {"schema": 1}])
def test_a_damaged_file_is_named(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "a" / "memory.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**json.loads(taken("ResNet@k=32").to_json()), **change}))
    with pytest.raises(InputError, match=r"memory.json can't be read as a record of memory: .*; remove and measure"):
        read_memory(path)
    good = tmp_path / "b" / "memory.json"
    good.parent.mkdir()
    good.write_bytes(taken("ResNet@k=32").to_json())
    found, unreadable = read_memories(tmp_path)
    assert found == [taken("ResNet@k=32")]
    assert len(unreadable) == 1
