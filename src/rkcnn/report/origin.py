"""Which code and machines made the records of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from rkcnn.record.result import Result


class Origin(NamedTuple):
    """Runs that were made by the same code on the same kind of machine."""

    rkcnn: str
    commit: str
    source: str
    torch: str
    python: str
    machine: str
    engine: str
    runs: int = 1


def find_origins(results: Iterable[Result]) -> list[Origin]:
    """Each once, that of the most runs first."""
    found = Counter(_origin(result) for result in results)
    return [origin._replace(runs=runs) for origin, runs in found.most_common()]


def _origin(result: Result) -> Origin:
    machine, versions = result.machine, result.versions
    processor = f"{machine.get('processor', 'CPU')}, {machine.get('threads', '?')} threads"
    return Origin(
        versions.get("rkcnn", "unknown"),
        result.commit or "unknown",
        result.source,
        versions.get("torch", "unknown"),
        versions.get("python", "unknown"),
        machine.get("gpu") or processor,
        result.engine,
    )
