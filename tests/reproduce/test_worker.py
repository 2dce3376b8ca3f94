"""Worker processes."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from digits import write_digits
from rkcnn.data.images import Images
from rkcnn.data.load import load_data_set
from rkcnn.data.options import Sources
from rkcnn.disk import lock_folder
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.run import Run
from rkcnn.record.run_state import BEGUN, find_state
from rkcnn.reproduce import worker
from rkcnn.reproduce.events import Event, Reporter, read_event
from rkcnn.reproduce.worker import Assignment, Slot, WorkerProcess, carry_out, count_cores, read_assignment
from rkcnn.run.side_by_side import Execution


def test_an_assignment_is_a_line() -> None:
    runs = tuple(enumerate(Run("mnist", "ResNet@k=4", find_recipe("paper-mnist"), seed) for seed in (0, 1)))
    assignment = Assignment(runs, Execution(Path("out"), "cuda:1", "graph"), Sources(Path("data"), offline=True), 2.0)
    assert "\n" not in assignment.to_json()
    assert read_assignment(assignment.to_json()) == assignment


RECIPE = replace(find_recipe("smoke"), max_steps_per_epoch=2)


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    runs = tuple(enumerate(Run("mnist-mini", "Identity@k=4", RECIPE, seed) for seed in range(4)))
    return Assignment(runs, Execution(tmp_path, "cpu", "eager"), Sources(), 0.0)


def outcomes(assignment: Assignment) -> list[Event]:
    events: list[Event] = []
    carry_out(assignment, load_data_set, events.append)
    return [event for event in events if event.kind in ("ends", "fails", "busy")]


def test_each_end_is_reported_once_though_the_group_fails(assignment: Assignment) -> None:
    """Two runs of the group have ended when the third can't continue."""
    folder = assignment.execution.out / assignment.runs[2][1].folder
    folder.mkdir(parents=True)
    (folder / "checkpoint-00000-000000.json").write_text("{")
    events = outcomes(assignment)
    assert [(event.kind, event.index) for event in events] == [("ends", 0), ("ends", 1), ("fails", 2), ("ends", 3)]
    assert "is damaged" in events[2].message


def test_runs_that_another_process_trains_are_reported_with_its_id(assignment: Assignment) -> None:
    carry_out(replace(assignment, runs=assignment.runs[:1]), load_data_set, lambda event: None)  # one is finished
    with (
        lock_folder(assignment.execution.out / assignment.runs[1][1].folder),
        lock_folder(assignment.execution.out / assignment.runs[2][1].folder),
    ):
        events = outcomes(assignment)
    assert [(event.kind, event.index) for event in events] == [("ends", 0), ("busy", 1), ("busy", 2), ("ends", 3)]
    assert events[1].message == f"process {os.getpid()} is training it"


def test_a_run_that_diverged_advances_no_more(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside others on a GPU it stays in the list of jobs."""

    def train(runs: list[Run], training: Images, test: Images, execution: Execution, observer: Reporter) -> None:
        for kind in ("begins", "ends", "advances"):
            observer._report(Event(kind, 0))

    monkeypatch.setattr(worker, "train_side_by_side", train)
    events: list[Event] = []
    carry_out(assignment, load_data_set, events.append)
    assert events == [Event("begins", 0), Event("ends", 0)]


def test_a_gpu_that_no_longer_works_ends_the_process(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver replaces it, since every other run would fail in it too; too little memory fails that run alone."""

    def train(*_: object) -> None:
        raise RuntimeError(says)

    monkeypatch.setattr(worker, "train_side_by_side", train)
    says = "CUDA error: an illegal memory access was encountered"
    with pytest.raises(SystemExit, match="rkcnn: CUDA error: an illegal memory access"):
        carry_out(assignment, load_data_set, lambda event: None)
    says = "CUDA out of memory. Tried to allocate 2 GiB"
    assert [event.kind for event in outcomes(assignment)] == ["fails"] * 4


def test_when_its_driver_dies_it_keeps_a_checkpoint_and_leaves(tmp_path: Path) -> None:
    data = write_digits(tmp_path / "digits.npz")
    recipe = replace(find_recipe("mini"), epochs=15000, batch=64)
    run = Run(data, "ResNet@k=4", recipe, 0)
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "rkcnn.reproduce.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        assignment = Assignment(((7, run),), Execution(out, "cpu", checkpoint_interval=1e9), Sources(), 0.0)
        print(assignment.to_json(), file=process.stdin, flush=True)
        for line in process.stdout:
            event = read_event(line)
            assert event.index == 7
            if event.fraction > 0:
                break
        process.stdout.close()  # both, as when the driver is killed
        process.stdin.close()
        process.stdin = None
        assert process.wait(60) == 0
    assert find_state(run, out) == BEGUN
    steps = [path.stem for path in (out / run.folder).glob("checkpoint-*.json")]
    assert max(steps) > "checkpoint-00000-000000"


@pytest.mark.parametrize(
    ("code", "reported", "exit_code"),
    [
        ('print(Event("advances", int(os.environ["RKCNN_HOLDER"])).to_json())', [Event("advances", os.getpid())], 0),
        (
            "print(Event('advances', 1).to_json()); print('{\"kind\": \"ad', end='', flush=True); sys.exit(9)",
            [Event("advances", 1)],
            9,
        ),
        ("os.kill(os.getpid(), 9)", [], -9),
    ],
    ids=["leaves", "dies while it writes a line", "killed"],
)
def test_its_events_and_its_end_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reported: list[Event], exit_code: int
) -> None:
    """It knows the id of its driver, which it writes into lock files."""
    stub = tmp_path / "python"
    stub.write_text(f"#!{sys.executable}\nimport os, sys\nfrom rkcnn.reproduce.events import Event\n{code}\n")
    stub.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stub))
    events: queue.Queue[tuple[WorkerProcess, Event | None]] = queue.Queue()
    worker = WorkerProcess(Slot("cpu", 1), events)
    assert [event for _, event in iter(lambda: events.get(timeout=600), (worker, None))] == reported
    assert worker.process.returncode == exit_code
    worker.dismiss()  # does no harm
    worker.stop()
    worker.listener.join()


def test_cores_where_the_system_does_not_say_which_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert count_cores() >= 1
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert count_cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert count_cores() == 1
