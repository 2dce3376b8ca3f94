"""Memory in the terminal."""

from __future__ import annotations

from footprints import taken
from rkcnn.record.tables import TABLES
from rkcnn.report.memory_text import memory_text
from rkcnn.report.view import view_of


def test_identity_has_a_line_where_it_is_no_row() -> None:
    table = TABLES["sota-mnist"]
    assert memory_text(view_of(table, ())) == ""
    memories = [taken("Identity@k=32", 612), taken("RKNet-64", 640)]
    lines = memory_text(view_of(table, (), memories=memories)).splitlines()
    assert lines[0] == "Memory of a fresh process that infers one image (MiB)"
    assert lines[1].split() == ["network", "driver", "−", "Identity", "reserved", "allocated"]  # theirs has none
    assert lines[2].endswith("640         +28         2       0.75")
    assert lines[-1].split() == ["Identity@k=32", "612", "+0", "2", "0.75"]


def test_another_recipe_is_marked_here_too() -> None:
    lines = memory_text(view_of(TABLES["mnist"], (), "smoke", [taken("Identity@k=32")])).splitlines()
    assert all(line.startswith("SMOKE ") for line in lines[2:])
