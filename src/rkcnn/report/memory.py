"""GPU memory of a row, as it was measured and as the paper prints it."""

from __future__ import annotations

from typing import NamedTuple

from rkcnn.evaluation.nvidia_smi import MIB
from rkcnn.record.memory import Memory
from rkcnn.report.paper import printed_memory
from rkcnn.report.results import ResultTable, Row

NONE = "-"
HEADS = ("memory, paper", "memory, driver", "driver − Identity", "torch reserved", "torch allocated")


class Footprint(NamedTuple):
    """In MiB; None where there is no number, and everywhere in a table of which nothing was measured."""

    printed: float | None = None
    driver: float | None = None
    above: float | None = None  # the driver's number minus that of Identity
    reserved: float | None = None
    allocated: float | None = None


def is_measured(results: ResultTable) -> bool:
    """Whether the memory of any row was measured."""
    return any(row.memory for row in results.rows)


def is_printed(results: ResultTable) -> bool:
    """Whether the paper prints memory for rows of this table."""
    return any(_printed(results, row.spec) is not None for row in results.rows)


def memory_heading(results: ResultTable) -> str:
    """Return the heading of a table of memory."""
    whose = "Memory: the paper's, and ours" if is_printed(results) else "Memory"
    return f"{whose} of a fresh process that infers one image"


def find_footprint(results: ResultTable, row: Row) -> Footprint:
    """Return a row's memory; all None in a table of which nothing was measured."""
    if not is_measured(results):
        return Footprint()
    found = footprint_of(row.memory, results.control) if row.memory else Footprint()
    return found._replace(printed=_printed(results, row.spec))


def footprint_of(memory: Memory, control: Memory | None) -> Footprint:
    """Return what was measured, without the paper's number; `control` is the record of Identity."""
    above = memory.above(control) if control else None
    return Footprint(
        None,
        memory.driver_bytes / MIB,
        None if above is None else above / MIB,
        memory.reserved_bytes / MIB,
        memory.allocated_bytes / MIB,
    )


def format_footprint(footprint: Footprint) -> tuple[str, ...]:
    """Return the texts below HEADS: the driver and torch count whole MiB, tensors take less than one."""
    forms = (".0f", ".0f", "+.0f", ".0f", ".2f")
    return tuple(NONE if value is None else format(value, form) for value, form in zip(footprint, forms, strict=True))


def _printed(results: ResultTable, spec: str) -> float | None:
    return printed_memory(results.paper.label, spec) if results.paper else None
