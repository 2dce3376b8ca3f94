"""A worker process: orders in, events out, and nothing lost when its driver dies."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from digits import write_digits
from rkcnn.data.images import Images
from rkcnn.data.load import load
from rkcnn.data.sources import Sources
from rkcnn.fit.recipe import recipe_of
from rkcnn.record.lock import locked
from rkcnn.record.run import Run
from rkcnn.record.run_state import BEGUN, find_state
from rkcnn.reproduce import worker
from rkcnn.reproduce.event import Event, read_event
from rkcnn.reproduce.reporter import Reporter
from rkcnn.reproduce.worker import Assignment, carry_out, read_order
from rkcnn.run.side_by_side import Execution


def test_an_order_is_a_line() -> None:
    runs = tuple(enumerate(Run("mnist", "ResNet@k=4", recipe_of("paper-mnist"), seed) for seed in (0, 1)))
    order = Assignment(runs, Execution(Path("out"), "cuda:1", "graph"), Sources(Path("data"), offline=True), 2.0)
    assert "\n" not in order.to_json()
    assert read_order(order.to_json()) == order


RECIPE = recipe_of("smoke", {"most_steps": "2"})


@pytest.fixture
def order(tmp_path: Path) -> Assignment:
    runs = tuple(enumerate(Run("mnist-mini", "Identity@k=4", RECIPE, seed) for seed in range(4)))
    return Assignment(runs, Execution(tmp_path, "cpu", "eager"), Sources(), 0.0)


def told(order: Assignment) -> list[Event]:
    events: list[Event] = []
    carry_out(order, load, events.append)
    return [event for event in events if event.what in ("ends", "fails", "busy")]


def test_a_group_that_falls_apart_tells_each_end_once(order: Assignment) -> None:
    """Two have ended, in the group, when the third can't go on."""
    folder = order.way.out / order.runs[2][1].folder
    folder.mkdir(parents=True)
    (folder / "checkpoint-00000-000000.json").write_text("{")
    events = told(order)
    assert [(event.what, event.run) for event in events] == [("ends", 0), ("ends", 1), ("fails", 2), ("ends", 3)]
    assert "is damaged" in events[2].text


def test_those_that_another_process_has_are_told_with_its_number(order: Assignment) -> None:
    carry_out(replace(order, runs=order.runs[:1]), load, lambda event: None)  # so one is found
    with locked(order.way.out / order.runs[1][1].folder), locked(order.way.out / order.runs[2][1].folder):
        events = told(order)
    assert [(event.what, event.run) for event in events] == [("ends", 0), ("busy", 1), ("busy", 2), ("ends", 3)]
    assert events[1].text == f"process {os.getpid()} has it"


def test_one_that_diverged_moves_no_more(order: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside others on a GPU it stays among the jobs that are looked at."""

    def train(runs: list[Run], training: Images, test: Images, way: Execution, observer: Reporter) -> None:
        for what in ("begins", "ends", "moves"):
            observer._tell(Event(what, 0))

    monkeypatch.setattr(worker, "train_together", train)
    events: list[Event] = []
    carry_out(order, load, events.append)
    assert events == [Event("begins", 0), Event("ends", 0)]


def test_a_gpu_that_no_longer_works_takes_its_process_with_it(
    order: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trying the runs one by one in it would fail them all; the driver replaces it. Memory is another matter."""

    def train(*_: object) -> None:
        raise RuntimeError(says)

    monkeypatch.setattr(worker, "train_together", train)
    says = "CUDA error: an illegal memory access was encountered"
    with pytest.raises(SystemExit, match="rkcnn: CUDA error: an illegal memory access"):
        carry_out(order, load, lambda event: None)
    says = "CUDA out of memory. Tried to allocate 2 GiB"
    assert [event.what for event in told(order)] == ["fails"] * 4


def test_when_its_driver_dies_it_keeps_and_leaves(tmp_path: Path) -> None:
    data = write_digits(tmp_path / "digits.npz")
    recipe = recipe_of("mini", {"epochs": "100000", "batch": "64"})
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
        order = Assignment(((7, run),), Execution(out, "cpu", keep_seconds=1e9), Sources(), 0.0)
        print(order.to_json(), file=process.stdin, flush=True)
        for line in process.stdout:
            event = read_event(line)
            assert event.run == 7
            if event.share > 0:
                break
        process.stdout.close()  # both, as when it is killed
        process.stdin.close()
        process.stdin = None
        assert process.wait(60) == 0
    assert find_state(run, out) == BEGUN
    steps = [path.stem for path in (out / run.folder).glob("checkpoint-*.json")]
    assert max(steps) > "checkpoint-00000-000000"
