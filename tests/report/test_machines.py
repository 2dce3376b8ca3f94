"""Where the runs of a table were computed."""

from __future__ import annotations

from pathlib import Path

from outcome import outcome
from report.records import put_records, results_of
from rkcnn.report.machines import describe_machine, note_machines


def test_a_machine_in_words() -> None:
    assert describe_machine(outcome(machine={"gpu": "NVIDIA H200", "threads": 8})) == "NVIDIA H200"
    assert describe_machine(outcome(machine={"processor": "x86_64", "threads": 1})) == "x86_64, 1 thread"
    assert describe_machine(outcome(machine={"threads": 2})) == "CPU, 2 threads"


def test_rows_that_were_computed_otherwise_are_named(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)}, machine={"gpu": "NVIDIA H200"}, engine="graph")
    assert list(note_machines(results_of(tmp_path))) == []
    put_records(
        tmp_path,
        {"RKCNN-R-2@k=32": (0.003,)},
        machine={"processor": "x86_64", "threads": 1},
        versions={"torch": "2.13"},
    )
    assert list(note_machines(results_of(tmp_path))) == [
        "The runs of this table were not all computed alike: pre-act ResNet on NVIDIA H200 (torch of unknown version, "
        "engine graph); RKCNN-R-2 k=32 on x86_64, 1 thread (torch 2.13, engine eager). They differ in rounding, so a "
        "difference between two such rows may come from that too."
    ]
