"""A table on this machine: whatever happens to a worker or the driver, every run ends as it would alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from textwrap import indent

import pytest
import torch

from digits import write_digits
from rkcnn.data.sources import Sources
from rkcnn.fit.recipe import recipe_of
from rkcnn.record.lock import locked
from rkcnn.record.result import read_result
from rkcnn.record.run import Run
from rkcnn.record.run_state import BEGUN, NEW, find_state
from rkcnn.reproduce import local
from rkcnn.reproduce.event import Event
from rkcnn.reproduce.local import places_for, reproduce_here
from rkcnn.reproduce.worker_process import Place, WorkerProcess
from rkcnn.run.side_by_side import Execution
from rkcnn.run.train import train

SPECS = ("RKCNN-R-2@k=4", "ResNet@k=4")
CHANGES = {"epochs": "4", "batch": "64", "lr": "0.05", "milestones": "2"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    data = write_digits(tmp_path_factory.mktemp("data") / "digits.npz")
    return [Run(data, spec, recipe_of("mini", CHANGES), seed) for seed, spec in enumerate(SPECS)]


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
def _one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker, which takes 2 s to start, for all runs in turn; tests/cli/test_reproduce.py has several."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})


def begin(runs: list[Run], out: Path) -> Generator[Event, None, None]:
    return reproduce_here(runs, Execution(out, "cpu", keep_seconds=0.0), Sources())


def weights(out: Path, run: Run) -> bytes:
    return (out / run.folder / "weights.safetensors").read_bytes()


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Workers that run that code instead of their own."""

    def make(code: str) -> None:
        file = tmp_path / "python"
        file.write_text(f"#!{sys.executable}\n{code}")
        file.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(file))

    return make


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> list[WorkerProcess]:
    """The workers, as they are employed."""
    found: list[WorkerProcess] = []
    born = WorkerProcess.__post_init__

    def note(hand: WorkerProcess) -> None:
        born(hand)
        found.append(hand)

    monkeypatch.setattr(WorkerProcess, "__post_init__", note)
    return found


WORKER = """
import os, runpy, signal
from pathlib import Path
from rkcnn.fit.trainer import Trainer
lives = Path({lives!r})
life = int(lives.read_text()) + 1
lives.write_text(str(life))
if life == 1:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until its tenth step
left, learn = [10], Trainer.learn
def learn_or_die(trainer, *batch):
    left[0] -= 1
    if left[0] == 0 and life == 1:
        signal.sigwait([signal.SIGTERM])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGTERM)
    if left[0] == 0 and life == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    learn(trainer, *batch)
Trainer.learn = learn_or_die
runpy.run_module("rkcnn.reproduce.worker", run_name="__main__")
"""


def test_stopped_or_killed_every_run_ends_as_it_would_alone(
    runs: list[Run], alone: Path, hands: list[WorkerProcess], workers: Callable[[str], None], tmp_path: Path
) -> None:
    """Stopped in its tenth step the driver goes on later, and the new worker dies in its tenth: the same weights."""
    lives = tmp_path / "lives"
    lives.write_text("0")
    workers(WORKER.format(lives=str(lives)))
    events = begin(runs, tmp_path)
    assert next(events).what == "begins"
    events.close()
    assert [find_state(run, tmp_path) for run in runs] == [BEGUN, NEW]
    told = [event for event in begin(runs, tmp_path) if event.what != "moves"]
    assert [(event.what, event.run) for event in told] == [
        *(("begins", 0), ("dies", 0)),
        *(("begins", 1), ("ends", 1), ("begins", 0), ("ends", 0)),
    ]
    shares = [event.share for event in told if event.what == "begins"]
    assert shares == [10 / 24, 0.0, 19 / 24], "it went on, and did not begin again"
    assert len(hands) == 3  # one of the first driver, and of the second one that was replaced
    for run in runs:
        assert weights(tmp_path, run) == weights(alone, run)


def test_one_that_cannot_be_trained_takes_no_other_down_and_one_that_another_process_has_is_waited_for(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "BUSY", 0.0)
    held = runs[0]
    missing = Run("npz:/nowhere/digits.npz", SPECS[0], held.recipe, 0)
    wild = Run(held.data, SPECS[0], recipe_of("mini", {**CHANGES, "lr": "10000"}), 0)
    events = []
    with ExitStack() as other:
        other.enter_context(locked(tmp_path / held.folder))
        for event in begin([held, missing, wild], tmp_path):
            events.append(event)
            if event.run == 2:
                other.close()
    assert events[0] == Event("busy", 0, text=f"process {os.getpid()} has it")
    assert [event.what for event in events].count("busy") == 1
    news = {event.run: event for event in events}
    error = read_result(tmp_path / held.folder / "result.json").error
    assert news[0] == events[-1] == Event("ends", 0, 1.0, error, "finished")
    assert news[1].what == "fails"
    assert "/nowhere/digits.npz" in news[1].text
    assert news[2].what == "ends"
    assert news[2].text.startswith("diverged: the loss is not finite at epoch 1")


STUB = """
import json, sys
from pathlib import Path
for line in sys.stdin:
    if not line.strip():
        break
    runs = json.loads(line)["runs"]
    def tell(what, place=-1, share=0.0, text=""):
        print(json.dumps(dict(what=what, run=place, share=share, error=None, text=text)), flush=True)
{code}
    for place, run in runs:
        tell("ends", place, 1.0, "finished")
    tell("idle")
"""


@pytest.fixture
def stub(workers: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Workers that do that with an order, each with one GPU for the whole table."""

    def make(code: str) -> None:
        workers(STUB.format(code=indent(code, "    ")))
        monkeypatch.setattr(local, "places_for", lambda *_: [Place("cuda:0", 1)])

    return make


def many(count: int) -> list[Run]:
    return [Run("mnist", SPECS[0], recipe_of("mini"), seed) for seed in range(count)]


def test_one_that_kills_its_process_is_found_among_ten(stub: Callable[[str], None], tmp_path: Path) -> None:
    """A group dies with it, so groups are halved until it stands alone; each death is told of all that it concerns."""
    stub('if any(place == 6 for place, _ in runs): tell("moves", 6, 0.25); sys.exit(9)')
    events = list(begin(many(10), tmp_path))
    died = [event.run for event in events if event.what == "dies"]
    assert died == [*range(10), *range(5, 10), 5, 6, 7, 5, 6, 6, 6]
    assert [event for event in events if event.what == "fails"] == [
        Event("fails", 6, text="its process died with exit code 9; it came no further in 3 attempts")
    ]
    assert sorted(event.run for event in events if event.what == "ends") == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    why = "its process died with exit code 9; it goes on from its last checkpoint"
    assert Event("dies", 6, 0.25, text=why) in events


def test_one_that_comes_further_each_time_is_never_given_up(stub: Callable[[str], None], tmp_path: Path) -> None:
    (run,) = many(1)
    folder = tmp_path / run.folder
    folder.mkdir(parents=True)
    stub(f"""
kept = len(list(Path({str(folder)!r}).glob("*.json")))
if kept < 7:
    (Path({str(folder)!r}) / f"checkpoint-00000-{{kept:06d}}.json").touch()
    sys.exit(9)
""")
    assert [event.what for event in begin([run], tmp_path)] == ["dies"] * 7 + ["ends"]


def test_busy_runs_of_a_group_come_back_together_and_are_told_once(stub: Callable[[str], None], tmp_path: Path) -> None:
    """Also when the process dies that found them busy; they did not."""
    stub(f"""
asked = Path({str(tmp_path)!r}) / "asked"
with asked.open("a") as file:
    print([place for place, _ in runs], file=file)
count = len(asked.read_text().splitlines())
if count < 4:
    for place in (1, 2):
        tell("busy", place, text="process 7 has it")
    runs = [one for one in runs if one[0] not in (1, 2)]
if count == 1:
    sys.exit(9)
""")
    events = list(begin(many(4), tmp_path))
    assert (tmp_path / "asked").read_text().splitlines() == ["[0, 1, 2, 3]", "[0]", "[3]", "[1, 2]"]
    assert [event for event in events if event.what == "busy"] == [
        Event("busy", place, text="process 7 has it") for place in (1, 2)
    ]
    assert [event.run for event in events if event.what == "dies"] == [0, 3]
    assert sorted(event.run for event in events if event.what == "ends") == [0, 1, 2, 3]


def test_silence_is_worth_a_word_of_the_first_that_still_trains(
    stub: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that ended or is busy is not it, however often others are heard of."""
    stub("""
if len(runs) == 4:
    tell("ends", 0, 1.0, "finished")
    tell("busy", 1, text="process 7 has it")
    tell("moves", 2, 0.5)
    sys.stdin.readline()
""")
    events = begin(many(4), tmp_path)
    assert [next(events).what for _ in range(3)] == ["ends", "busy", "moves"]
    monkeypatch.setattr(local, "SILENCE", 0.1)
    assert [next(events) for _ in range(2)] == [Event("silent", 2, 0.5)] * 2
    events.close()


@pytest.mark.parametrize("second", [KeyboardInterrupt, SystemExit(143)])
def test_asked_a_second_time_it_waits_for_nobody(
    stub: Callable[[str], None],
    hands: list[WorkerProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    second: BaseException | type[BaseException],
) -> None:
    stub("""
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
tell("moves", 0, 0.5)
time.sleep(600)
""")
    events = begin(many(1), tmp_path)
    assert next(events).what == "moves"
    wait = subprocess.Popen.wait

    def ask_again(process: subprocess.Popen[str], timeout: float | None = None) -> int:
        if timeout is not None:  # the driver's, not the listener's
            raise second
        return wait(process)

    monkeypatch.setattr(subprocess.Popen, "wait", ask_again)
    events.close()
    (hand,) = hands
    assert hand.process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("count", "threads"), [(1, [2]), (2, [1, 1]), (9, [1, 1])])
def test_cores_are_shared_out(count: int, threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert [place.threads for place in places_for("cpu", count)] == threads


def test_gpus_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "pick_device", lambda name: torch.device("cuda" if name == "auto" else name))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert [place.device for place in places_for("auto", 9)] == [f"cuda:{i}" for i in range(4)]
    assert [place.device for place in places_for("auto", 2)] == ["cuda:0", "cuda:1"]
    assert [place.device for place in places_for("cuda:3", 9)] == ["cuda:3"]
