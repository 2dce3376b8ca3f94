"""Being asked to stop by Ctrl-C or SIGTERM, and how many runs a GPU has room for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from rkcnn.run.job import Job
from rkcnn.run.observer import Observer
from rkcnn.run.side_by_side import MOST_AT_ONCE, Stopped, _has_room, stop_signals
from rkcnn.run.train import train
from run.tiny_run import go, only


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Give the process its own handlers back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_is_collected_and_the_second_interrupts(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_signals() as received:
        os.kill(os.getpid(), number)
        assert received == [number.name]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before


def test_asked_to_stop_while_runs_are_prepared_it_prepares_no_more(
    digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StopsAtTheFirst(Observer):
        def run_started(self, job: Job, note: str) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("rkcnn.run.side_by_side._has_room", lambda device, jobs: True)
    with pytest.raises(Stopped, match="SIGTERM"):
        train("RKCNN-R-2@k=4", digits, "mini", range(3), out=tmp_path, observer=StopsAtTheFirst())
    assert [path.name for path in tmp_path.rglob("checkpoint-*.json")] == ["checkpoint-00000-000000.json"]


def test_what_the_caller_has_set_in_torch_changes_no_weight(digits: str, tmp_path: Path) -> None:
    go(digits, tmp_path / "usual", changes={"epochs": "1"})
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            go(digits, tmp_path / "other", changes={"epochs": "1"})
    finally:
        torch.set_default_dtype(torch.float32)
    one, two = (load_file(only(tmp_path / name, "weights.safetensors")) for name in ("usual", "other"))
    assert all(torch.equal(one[name], two[name]) and one[name].dtype == two[name].dtype for name in one)


@pytest.mark.parametrize(
    ("free", "reserved", "jobs", "room"),
    [(7, 4, 1, True), (6, 4, 1, False), (7, 8, 2, True), (100, 4, MOST_AT_ONCE, False), (0, 0, 0, True)],
)
def test_what_a_run_needs_is_what_this_process_has_reserved_for_each(
    monkeypatch: pytest.MonkeyPatch, free: int, reserved: int, jobs: int, room: bool
) -> None:
    """What other processes have makes no difference but to what is free."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: reserved)
    started: list[Any] = [None] * jobs
    assert _has_room(torch.device("cuda"), started) == room
    assert _has_room(torch.device("cpu"), started) == (not jobs)
