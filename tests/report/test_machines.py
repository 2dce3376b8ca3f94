"""Where the runs of a table were computed."""

from __future__ import annotations

from pathlib import Path

from outcome import outcome
from report.records import put_records, results_of
from rkcnn.record.result import Stretch
from rkcnn.report.machines import describe_machine, note_machines, note_versions


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


def put_by_code(folder: Path, network: str, errors: tuple[float, ...], *sources: str) -> None:
    epochs = 160 // len(sources)
    stretches = tuple(Stretch(commit=None, source=source, hash_version=2, epochs=epochs) for source in sources)
    put_records(folder, {network: errors}, stretches=stretches)


def test_seeds_by_other_code_are_named(tmp_path: Path) -> None:
    put_by_code(tmp_path, "ResNet@k=32", (0.004, 0.005), "a" * 16, "b" * 16)
    assert list(note_versions(results_of(tmp_path))) == [], "each run was continued by the same later version"
    put_by_code(tmp_path / "z", "ResNet@k=32", (0.004, 0.005, 0.003), "a" * 16)
    (said,) = note_versions(results_of(tmp_path))
    assert said == (
        "pre-act ResNet: its runs were computed by different versions of the code, so they may not be of one network: "
        f"seeds 0, 1 by {'a' * 16} and {'b' * 16} and 2 by {'a' * 16}."
    )


def test_versions_that_train_the_same_weights_are_one(tmp_path: Path) -> None:
    put_by_code(tmp_path, "ResNet@k=32", (0.004,), "65635eb177adca2a")
    put_by_code(tmp_path / "z", "ResNet@k=32", (0.004, 0.005), "8c96edf8559c4cfd")
    assert list(note_versions(results_of(tmp_path))) == []
