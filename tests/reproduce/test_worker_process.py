"""A worker process as its driver sees it."""

from __future__ import annotations

import os
import queue
import sys
from pathlib import Path

import pytest

from rkcnn.reproduce.events import Event
from rkcnn.reproduce.worker_process import Slot, WorkerProcess, count_cores


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
