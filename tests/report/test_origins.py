"""Which code and machines made the records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from outcome import outcome
from rkcnn.record.result import Stretch
from rkcnn.report.origins import find_origins


def test_equal_origins_are_counted_and_the_most_runs_come_first() -> None:
    gpu: dict[str, Any] = {
        "versions": {"rkcnn": "0.1.0", "torch": "2.11.0"},
        "machine": {"gpu": "NVIDIA H200"},
        "stretches": (Stretch(commit="abc+", source="0123456789abcdef", rule=2, epochs=3),),
    }
    made = [outcome(), outcome(**gpu), outcome(**gpu), outcome(**gpu, engine="graph")]
    made = [replace(result, run=replace(result.run, seed=seed)) for seed, result in enumerate(made)]
    first, *others = find_origins(made)
    assert (first.runs, first.commit, first.torch, first.machine) == (2, "abc+", "2.11.0", "NVIDIA H200")
    assert [origin.runs for origin in others] == [1, 1]
    assert sum(origin.runs for origin in find_origins(made)) == len(made)


def test_what_a_record_does_not_say_is_unknown() -> None:
    (origin,) = find_origins([outcome(machine={"gpu": None, "processor": "x86_64", "threads": 2})])
    assert (origin.commit, origin.torch, origin.machine) == ("unknown", "unknown", "x86_64, 2 threads")
    assert origin.source == "0123456789abcdef"


def test_no_records_no_origins() -> None:
    assert find_origins([]) == []


def test_a_run_of_several_tables_counts_once() -> None:
    other = replace(outcome(), run=replace(outcome().run, seed=1))
    (origin,) = find_origins([outcome(), other, outcome(), outcome()])
    assert origin.runs == 2


def test_a_run_that_another_version_continued_lists_both() -> None:
    stretches = (
        Stretch(epochs=123, commit="037bf535bfd0", source="0123456789abcdef", rule=1),
        Stretch(epochs=37, commit=None, source="fedcba9876543210", rule=2),
    )
    (origin,) = find_origins([outcome(stretches=stretches)])
    assert origin.commit == "037bf535bfd0 (123 epochs), then unknown (37 epochs)"
    assert origin.source == "0123456789abcdef (123 epochs), then fedcba9876543210 (37 epochs)"
