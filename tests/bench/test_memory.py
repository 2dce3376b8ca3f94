"""The memory of a training step."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from rkcnn.bench.memory import PeakMemory, main, measure_peak, take_steps
from rkcnn.bench.plan import CannotRun, PeerChoice
from rkcnn.error import InputError


@pytest.mark.parametrize("peer", [None, PeerChoice("naive")])
def test_steps_take_memory(peer: PeerChoice | None) -> None:
    peak, idle = take_steps("RKCNN-E-1@k=4", 2, "fp32", "eager", torch.device("cpu"), peer)
    assert peak >= idle > 1 << 20


def answer(monkeypatch: pytest.MonkeyPatch, out: str, err: str = "", code: int = 0) -> list[Any]:
    """Let the child answer so; return the list of the commands that were run."""
    commands: list[Any] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, code, out, err)

    monkeypatch.setattr("rkcnn.bench.memory.subprocess.run", run)
    return commands


def test_what_the_child_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = answer(monkeypatch, 'a line of a library\n{"peak": 5, "idle": 3}\n')
    peer = PeerChoice("authors", Path("there"))
    assert measure_peak("ResNet@k=4", 2, "fp32", "eager", "cpu", peer) == PeakMemory(5, 3)
    assert commands[0][-6:] == ["ResNet@k=4", "2", "fp32", "eager", "cpu", "authors=there"]
    answer(monkeypatch, '{"cannot": "no graph"}')
    with pytest.raises(CannotRun, match="no graph"):
        measure_peak("ResNet@k=4", 2, "fp32", "graph", "cpu", None)
    answer(monkeypatch, '{"error": "no such peer"}')
    with pytest.raises(InputError, match="no such peer"):
        measure_peak("ResNet@k=4", 2, "fp32", "eager", "cpu", None)
    answer(monkeypatch, "", "Traceback\nMemoryError: no more\n", 1)
    with pytest.raises(InputError, match="at batch 2 can't be measured: MemoryError: no more"):
        measure_peak("ResNet@k=4", 2, "fp32", "eager", "cpu", None)
    answer(monkeypatch, "", "", -9)
    with pytest.raises(CannotRun, match="killed by signal 9, probably for want of memory"):
        measure_peak("ResNet@k=4", 2, "fp32", "eager", "cpu", None)


def test_the_child_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    main(["ResNet@k=4", "2", "fp32", "graph", "cpu", "-"])
    assert json.loads(capsys.readouterr().out) == {"cannot": "no CUDA graph: it needs a GPU"}
    main(["ResNett@k=4", "2", "fp32", "eager", "cpu", "-"])
    assert "did you mean ResNet" in json.loads(capsys.readouterr().out)["error"]
    main(["ResNet@k=4", "2", "fp32", "eager", "cpu", "naive"])
    assert "no naive writing" in json.loads(capsys.readouterr().out)["cannot"]


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")])
def test_the_child_says_that_memory_ran_out(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("rkcnn.bench.memory.take_steps", fail)
    main(["ResNet@k=4", "2", "fp32", "eager", "cpu", "-"])
    assert json.loads(capsys.readouterr().out) == {"cannot": "too little memory"}
