"""Which code and machines made the records of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from rkcnn.record.result import Result
from rkcnn.record.run import Run


class Origin(NamedTuple):
    """A number of runs that were made by the same code on the same kind of machine.

    `commit` and `source` list each stretch of epochs, where a run was continued by another version of the code.
    """

    rkcnn: str
    commit: str
    source: str
    torch: str
    python: str
    machine: str
    engine: str
    runs: int = 1


def find_origins(results: Iterable[Result]) -> list[Origin]:
    """Return each origin once, the one of the most runs first; a run that stands in several tables counts once."""
    runs: dict[Run, Result] = {}
    for result in results:
        runs.setdefault(result.run, result)
    found = Counter(map(_origin, runs.values()))
    return [origin._replace(runs=number) for origin, number in found.most_common()]


def _origin(result: Result) -> Origin:
    machine, versions = result.machine, result.versions
    processor = f"{machine.get('processor', 'CPU')}, {machine.get('threads', '?')} threads"
    commits, sources = _list_code(result)
    return Origin(
        versions.get("rkcnn", "unknown"),
        commits,
        sources,
        versions.get("torch", "unknown"),
        versions.get("python", "unknown"),
        machine.get("gpu") or processor,
        result.engine,
    )


def _list_code(result: Result) -> tuple[str, str]:
    """Return the commits and source hashes that computed a run, with their numbers of epochs if there are several."""
    if len(result.stretches) == 1:
        return result.commit or "unknown", result.source
    commits = [f"{each.commit or 'unknown'} ({each.epochs} epochs)" for each in result.stretches]
    sources = [f"{each.source} ({each.epochs} epochs)" for each in result.stretches]
    return ", then ".join(commits), ", then ".join(sources)
