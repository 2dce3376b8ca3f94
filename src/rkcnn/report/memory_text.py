"""GPU memory of a table's rows for the terminal."""

from __future__ import annotations

from rkcnn.report.columns import columns
from rkcnn.report.entry import entries
from rkcnn.report.footprint import describe_memory, is_measured, say_footprint, say_heading
from rkcnn.report.view import View
from rkcnn.report.words import tag

HEADS = ("network", "theirs", "driver", "− Identity", "reserved", "allocated")


def memory_text(view: View) -> str:
    """One line a row, also for Identity where the table has no such row; nothing where nothing was measured."""
    if not is_measured(view):
        return ""
    start = f"{tag(view)} " if view.preset == "smoke" else ""  # memory knows no recipe, but smoke is marked everywhere
    lines = [(start + entry.label, *entry.memory) for entry in entries(view)]
    if view.control and view.control.spec not in view.table.specs:
        lines.append((start + view.control.spec, *say_footprint(describe_memory(view.control, view.control))))
    heading = f"{say_heading(view)} (MiB)"
    return "".join(f"{line.rstrip()}\n" for line in (heading, *columns((HEADS, *lines))))
