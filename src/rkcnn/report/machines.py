"""Which machine and software computed a run, in the words of a report."""

from __future__ import annotations

from collections.abc import Iterator

from rkcnn.record.result import Result
from rkcnn.record.source import is_same_code
from rkcnn.report.results import ResultTable
from rkcnn.report.row import Row
from rkcnn.report.sentences import join


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


def note_versions(results: ResultTable) -> Iterator[str]:
    """Name the rows whose runs were computed by different versions of the code, or of a registered step or method."""
    for row in results.rows:
        versions = _group_by_code(row)
        if len(versions) > 1:
            listed = join([f"{', '.join(map(str, seeds))} by {' and '.join(code)}" for code, seeds in versions.items()])
            yield (
                f"{row.label}: its runs were computed by different versions of the code, so they may not be of one "
                f"network: seeds {listed}."
            )


def _group_by_code(row: Row) -> dict[tuple[str, ...], list[int]]:
    """Return the seeds of a row by the hashes of the code that computed them; hashes of the same code are one."""
    found: dict[tuple[str, ...], list[int]] = {}
    for result in (*row.results, *row.diverged):
        code = tuple(stretch.source for stretch in result.stretches)
        known = (each for each in found if _is_alike(each, code, row.network))
        found.setdefault(next(known, code), []).append(result.run.seed)
    return found


def _is_alike(one: tuple[str, ...], two: tuple[str, ...], network: str) -> bool:
    """Whether every hash of one run is the code of some hash of the other."""
    pairs = ((one, two), (two, one))
    return all(any(is_same_code(a, b, network) for b in others) for each, others in pairs for a in each)


def _describe(result: Result) -> str:
    """Write NVIDIA H200 (torch 2.11.0+cu130, engine graph)."""
    torch = result.versions.get("torch", "of unknown version")
    return f"{describe_machine(result)} (torch {torch}, engine {result.engine})"
