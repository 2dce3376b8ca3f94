"""GPU memory of a row, measured and printed."""

from __future__ import annotations

from typing import NamedTuple

from rkcnn.evaluation.nvidia_smi import MIB
from rkcnn.record.memory import Memory
from rkcnn.report.cells import cells
from rkcnn.report.view import Row, View

NONE = "-"
HEADS = ("memory, theirs", "memory, driver", "driver − Identity", "torch reserved", "torch allocated")


class Footprint(NamedTuple):
    """MiB; None where there is no number, and everywhere in a table of which nothing was measured."""

    printed: float | None = None
    driver: float | None = None
    above: float | None = None  # the driver's, minus Identity's
    reserved: float | None = None
    allocated: float | None = None


def is_measured(view: View) -> bool:
    return any(row.memory for row in view.rows)


def is_printed(view: View) -> bool:
    """Whether the paper has memory for rows of this table."""
    return any(_printed(view, row.spec) is not None for row in view.rows)


def say_heading(view: View) -> str:
    whose = "Memory: the paper's, and ours" if is_printed(view) else "Memory"
    return f"{whose} of a fresh process that infers one image"


def find_footprint(view: View, row: Row) -> Footprint:
    if not is_measured(view):
        return Footprint()
    found = describe_memory(row.memory, view.control) if row.memory else Footprint()
    return found._replace(printed=_printed(view, row.spec))


def describe_memory(memory: Memory, control: Memory | None) -> Footprint:
    """What was measured, without the paper's."""
    above = memory.above(control) if control else None
    return Footprint(
        None,
        memory.driver_bytes / MIB,
        None if above is None else above / MIB,
        memory.reserved_bytes / MIB,
        memory.allocated_bytes / MIB,
    )


def say_footprint(footprint: Footprint) -> tuple[str, ...]:
    """The cells below HEADS; the driver and torch count whole MiB, tensors take less than one."""
    forms = (".0f", ".0f", "+.0f", ".0f", ".2f")
    return tuple(NONE if value is None else format(value, form) for value, form in zip(footprint, forms, strict=True))


def _printed(view: View, spec: str) -> float | None:
    place = view.table.paper
    found = (
        [cell.printed for cell in cells(place.label) if (cell.row, cell.column) == (spec, "memory")] if place else []
    )
    return float(found[0]) if found and found[0] != NONE else None
