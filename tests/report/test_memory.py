"""Memory of a row, measured and printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from footprints import put_memories
from report.records import put_records, results_of
from rkcnn.record.tables import TABLES
from rkcnn.report.memory import Footprint, find_footprint, format_footprint
from rkcnn.report.paper import cells


def find(folder: Path, spec: str, table: str = "mnist") -> Footprint:
    seen = results_of(folder, table)
    return find_footprint(seen, next(row for row in seen.rows if row.spec == spec))


def test_nothing_where_nothing_was_measured_not_even_theirs(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert find(tmp_path, "ResNet@k=32") == Footprint()
    assert format_footprint(Footprint()) == ("-",) * 5


def test_no_difference_from_another_machines_identity(tmp_path: Path) -> None:
    put_memories(tmp_path, {"ResNet@k=32": 620})
    assert find(tmp_path, "ResNet@k=32") == (767, 620, None, 2, 0.75)
    put_memories(tmp_path, {"Identity@k=32": 500}, gpu="NVIDIA A100")
    assert find(tmp_path, "ResNet@k=32").above is None
    put_memories(tmp_path, {"Identity@k=32": 630})
    assert format_footprint(find(tmp_path, "ResNet@k=32")) == ("767", "620", "-10", "2", "0.75")
    assert find(tmp_path, "Identity@k=32") == (None, 630, 0, 2, 0.75)


@pytest.mark.parametrize("table", ["mnist", "cifar10", "cifar100", "svhn"])
def test_every_cell_of_the_papers_column_is_found(tmp_path: Path, table: str) -> None:
    put_memories(tmp_path, {TABLES[table].control: 600}, data=TABLES[table].data)
    seen = results_of(tmp_path, table)
    theirs = [find_footprint(seen, row).printed for row in seen.rows]
    place = "tb:MNIST" if table == "mnist" else "tb:cifar"
    printed = [cell.printed for cell in cells(place) if cell.column == "memory"]
    assert theirs == [*(None if text == "-" else float(text) for text in printed), None]  # Identity is ours
