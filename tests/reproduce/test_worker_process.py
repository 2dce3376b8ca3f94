"""A worker process as its driver hears it."""

from __future__ import annotations

import os
import queue
import sys
from pathlib import Path

import pytest

from rkcnn.reproduce.event import Event
from rkcnn.reproduce.worker_process import Place, WorkerProcess


@pytest.mark.parametrize(
    ("code", "heard", "exit_code"),
    [
        ('print(Event("moves", int(os.environ["RKCNN_HOLDER"])).to_json())', [Event("moves", os.getpid())], 0),
        (
            "print(Event('moves', 1).to_json()); print('{\"what\": \"mo', end='', flush=True); sys.exit(9)",
            [Event("moves", 1)],
            9,
        ),
        ("os.kill(os.getpid(), 9)", [], -9),
    ],
    ids=["leaves", "dies in the midst of a line", "killed"],
)
def test_what_it_says_and_that_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, heard: list[Event], exit_code: int
) -> None:
    """It is told who its driver is, for the lock's number."""
    stub = tmp_path / "python"
    stub.write_text(f"#!{sys.executable}\nimport os, sys\nfrom rkcnn.reproduce.event import Event\n{code}\n")
    stub.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stub))
    news: queue.Queue[tuple[WorkerProcess, Event | None]] = queue.Queue()
    hand = WorkerProcess(Place("cpu", 1), news)
    said = [event for _, event in iter(lambda: news.get(timeout=60), (hand, None))]
    assert said == heard
    assert hand.process.returncode == exit_code
    hand.give(None)  # does no harm
    hand.listener.join()
