"""A table on this machine: whatever happens to a worker or the driver, every run ends as it would alone."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from digits import write_digits
from rkcnn.data.sources import Sources
from rkcnn.record.lock import locked
from rkcnn.record.result import read_result
from rkcnn.record.run import Run
from rkcnn.record.standing import BEGUN, standing
from rkcnn.reproduce import local
from rkcnn.reproduce.event import Event, read_event
from rkcnn.reproduce.local import places_for, reproduce_here
from rkcnn.run.together import Way
from rkcnn.run.train import train
from rkcnn.train.recipe import recipe_of

SPECS = ("RKCNN-R-2@k=4", "ResNet@k=4")
CHANGES = {"epochs": "4", "batch": "64", "lr": "0.05", "milestones": "2"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    data = write_digits(tmp_path_factory.mktemp("data") / "digits.npz")
    return [Run(data, spec, recipe_of("mini", CHANGES), seed) for spec in SPECS for seed in (0, 1)]


@pytest.fixture(scope="module")
def alone(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those runs by themselves, in one thread as the workers have it."""
    out = tmp_path_factory.mktemp("alone")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for run in runs:
        train(run.spec, run.data, run.recipe, (run.seed,), out=out)
    torch.set_num_threads(threads)
    return out


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on any machine with two; a test must not depend on more."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def begin(runs: list[Run], out: Path) -> Generator[Event, None, None]:
    return reproduce_here(runs, Way(out, "cpu", keep_seconds=0.0), Sources())


def weights(out: Path, run: Run) -> bytes:
    return (out / run.folder / "weights.safetensors").read_bytes()


def test_stopped_or_killed_every_run_ends_as_it_would_alone(
    runs: list[Run], alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the driver is stopped, then it goes on and a worker of it is killed: bit for bit the same weights."""
    events = begin(runs, tmp_path)
    for event in events:
        if event.what == "moves" and event.share > 0.3:
            break
    events.close()
    stand = [standing(run, tmp_path) for run in runs]
    assert BEGUN in stand
    hands: list[local.Hand] = []
    born = local.Hand.__post_init__

    def note(hand: local.Hand) -> None:
        born(hand)
        hands.append(hand)

    monkeypatch.setattr(local.Hand, "__post_init__", note)
    shares: dict[int, float] = {}
    killed = False
    for event in begin(runs, tmp_path):
        if event.what == "begins":
            shares.setdefault(event.run, event.share)
        if event.what == "moves" and event.share > 0.6 and not killed:
            os.kill(next(h for h in hands if event.run in dict(h.group)).process.pid, signal.SIGKILL)
            killed = True
    assert killed
    assert len(hands) == 3  # one was replaced
    assert max(shares.values()) > 0  # it went on, and did not begin again
    for run in runs:
        assert weights(tmp_path, run) == weights(alone, run)


def test_one_that_cannot_be_trained_takes_no_other_down(runs: list[Run], tmp_path: Path) -> None:
    missing = Run("npz:/nowhere/digits.npz", SPECS[0], runs[0].recipe, 0)
    wild = Run(runs[0].data, SPECS[0], recipe_of("mini", {**CHANGES, "lr": "10000"}), 0)
    news = {event.run: event for event in begin([missing, wild, runs[0]], tmp_path) if event.what in ("ends", "fails")}
    assert news[0].what == "fails"
    assert "/nowhere/digits.npz" in news[0].text
    assert news[1].what == "ends"
    assert news[1].text.startswith("diverged: the loss is not finite at epoch 1")
    assert news[2] == Event("ends", 2, 1.0, read_result(tmp_path / runs[0].folder / "result.json").error, "finished")


def test_a_process_that_always_dies_is_given_up(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (event,) = begin(runs[:1], tmp_path)
    assert event.what == "fails"
    assert event.text == "its process died 3 times, last with exit code 1"


STUB = """
import json, sys
for line in sys.stdin:
    if not line.strip():
        break
    runs = json.loads(line)["runs"]
    if any(run["spec"].startswith("ResNet") and run["seed"] == 1 for _, run in runs):
        {death}
    for place, run in runs:
        print(json.dumps(dict(what="ends", run=place, share=1.0, error=0.5, text="finished")), flush=True)
    print(json.dumps(dict(what="idle", run=-1, share=0.0, error=None, text="")), flush=True)
"""


@pytest.mark.parametrize("death", ["sys.exit(9)", "print('{\"what\": \"mo', end='', flush=True); sys.exit(9)"])
def test_one_that_kills_its_process_is_found_among_ten(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, death: str
) -> None:
    """A group dies with it, so groups are halved until it stands alone; also when it dies in the midst of a line."""
    stub = tmp_path / "python"
    stub.write_text(f"#!{sys.executable}\n" + STUB.format(death=death))
    stub.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stub))
    monkeypatch.setattr(local, "places_for", lambda *_: [local.Place("cuda:0", 1)])
    many = [Run("mnist", spec, runs[0].recipe, seed) for spec in SPECS for seed in range(5)]
    news = {event.run: event for event in begin(many, tmp_path)}
    assert [number for number, event in news.items() if event.what == "fails"] == [6]
    assert news[6].text == "its process died 3 times, last with exit code 9"
    assert len(news) == 10


def test_a_run_that_another_process_has_is_waited_for(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = runs[:2]
    held = ExitStack()
    held.enter_context(locked(tmp_path / first.folder))
    ended = []
    for event in begin([first, second], tmp_path):
        if event.what == "ends":
            ended.append(event.run)
            held.close()  # the other process is done with it
    assert ended == [1, 0]


def test_silence_is_worth_a_word(runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "SILENCE", 0.05)
    events = begin(runs[:1], tmp_path)
    assert next(events) == Event("silent", 0)  # it takes longer than that to start a process
    events.close()


@pytest.mark.parametrize(("count", "threads"), [(1, [2]), (2, [1, 1]), (9, [1, 1])])
def test_cores_are_shared_out(count: int, threads: list[int]) -> None:
    assert [place.threads for place in places_for("cpu", count)] == threads


def test_gpus_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "pick_device", lambda name: torch.device("cuda" if name == "auto" else name))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert [place.device for place in places_for("auto", 9)] == [f"cuda:{i}" for i in range(4)]
    assert [place.device for place in places_for("auto", 2)] == ["cuda:0", "cuda:1"]
    assert [place.device for place in places_for("cuda:3", 9)] == ["cuda:3"]


def test_an_event_is_a_line() -> None:
    event = Event("moves", 3, 0.25, 0.5, "a\nb")
    assert "\n" not in event.to_json()
    assert read_event(event.to_json()) == event
