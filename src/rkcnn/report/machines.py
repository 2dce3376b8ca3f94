"""Which machine and software computed a run, in the words of a report."""

from __future__ import annotations

from collections.abc import Iterator

from rkcnn.record.result import Result
from rkcnn.report.results import ResultTable


def describe_machine(result: Result) -> str:
    """Write NVIDIA H200, or x86_64, 1 thread."""
    machine = result.machine
    threads = machine.get("threads", "?")
    return machine.get("gpu") or f"{machine.get('processor', 'CPU')}, {threads} thread{'s' * (threads != 1)}"


def note_machines(results: ResultTable) -> Iterator[str]:
    """Say which rows were computed where, if the runs of a table had different machines, engines or versions of torch.

    Such runs differ in rounding, which changes every weight after some steps.
    """
    rows: dict[str, dict[str, None]] = {}
    for row in results.rows:
        for result in (*row.results, *row.diverged):
            rows.setdefault(_describe(result), {})[row.label] = None
    if len(rows) > 1:
        listed = "; ".join(f"{', '.join(labels)} on {where}" for where, labels in rows.items())
        yield (
            f"The runs of this table were not all computed alike: {listed}. They differ in rounding, so a difference "
            "between two such rows may come from that too."
        )


def _describe(result: Result) -> str:
    """Write NVIDIA H200 (torch 2.11.0+cu130, engine graph)."""
    torch = result.versions.get("torch", "of unknown version")
    return f"{describe_machine(result)} (torch {torch}, engine {result.engine})"
