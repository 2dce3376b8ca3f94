"""A table on this machine: whatever happens to a worker or the driver, every run ends as it would by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest
import torch

from digits import write_digits
from rkcnn.data.options import Sources
from rkcnn.disk import lock_folder
from rkcnn.fit.recipe import find_recipe
from rkcnn.fit.recipe_changes import read_changes
from rkcnn.record.result import read_result
from rkcnn.record.run import Run
from rkcnn.record.run_state import BEGUN, NEW, find_state
from rkcnn.reproduce import local
from rkcnn.reproduce.events import Event
from rkcnn.reproduce.local import group_runs, reproduce_here, slots_for
from rkcnn.reproduce.worker import Slot, WorkerProcess
from rkcnn.run.side_by_side import Execution
from rkcnn.run.train import train

SPECS = ("RKCNN-R-2@k=4", "ResNet@k=4")
CHANGES = {"epochs": "4", "batch": "64", "lr": "0.05", "milestones": "2"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    data = write_digits(tmp_path_factory.mktemp("data") / "digits.npz")
    return [
        Run(data, spec, replace(find_recipe("mini"), **read_changes(CHANGES)), seed) for seed, spec in enumerate(SPECS)
    ]


@pytest.fixture(scope="module")
def alone(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those runs trained by themselves, in one thread as in the workers."""
    out = tmp_path_factory.mktemp("alone")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for run in runs:
        train(run.network, run.data, run.recipe, (run.seed,), out=out)
    torch.set_num_threads(threads)
    return out


@pytest.fixture(autouse=True)
def _one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker, which takes 2 s to start, for all runs in turn; tests/cli/test_reproduce.py has several."""
    monkeypatch.setattr(local, "count_cores", lambda: 1)


def train_here(runs: list[Run], out: Path) -> Generator[Event, None, None]:
    return reproduce_here(runs, Execution(out, "cpu", checkpoint_interval=0.0), Sources())


def weights(out: Path, run: Run) -> bytes:
    return (out / run.folder / "weights.safetensors").read_bytes()


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make workers run the given code instead of their own."""

    def make(code: str) -> None:
        file = tmp_path / "python"
        file.write_text(f"#!{sys.executable}\n{code}")
        file.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(file))

    return make


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[WorkerProcess]:
    """The worker processes, in the order in which they are started."""
    found: list[WorkerProcess] = []
    start = WorkerProcess.__post_init__

    def note(worker: WorkerProcess) -> None:
        start(worker)
        found.append(worker)

    monkeypatch.setattr(WorkerProcess, "__post_init__", note)
    return found


WORKER = """
import os, runpy, signal, threading
from pathlib import Path
from rkcnn.fit.trainer import Trainer
count = Path({count!r})
number = int(count.read_text()) + 1
count.write_text(str(number))
tenth, raised, raise_signal = threading.Event(), threading.Event(), signal.raise_signal
def raise_in_the_tenth_step(signal_number):
    tenth.wait()
    raise_signal(signal_number)
    raised.set()
signal.raise_signal = raise_in_the_tenth_step
left, learn = [10], Trainer.learn
def learn_or_die(trainer, *batch):
    left[0] -= 1
    if left[0] == 0 and number == 1:
        tenth.set()
        raised.wait()
    if left[0] == 0 and number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    learn(trainer, *batch)
Trainer.learn = learn_or_die
runpy.run_module("rkcnn.reproduce.worker", run_name="__main__")
"""


def test_stopped_or_killed_every_run_ends_with_the_same_weights(
    runs: list[Run], alone: Path, started: list[WorkerProcess], workers: Callable[[str], None], tmp_path: Path
) -> None:
    """The first worker is stopped in its tenth step, the second is killed in its tenth step."""
    count = tmp_path / "count"
    count.write_text("0")
    workers(WORKER.format(count=str(count)))
    first = train_here(runs, tmp_path)
    assert next(first).kind == "begins"
    first.close()
    assert [find_state(run, tmp_path) for run in runs] == [BEGUN, NEW]
    events = [event for event in train_here(runs, tmp_path) if event.kind != "advances"]
    assert [(event.kind, event.index) for event in events] == [
        *(("begins", 0), ("crashes", 0)),
        *(("begins", 1), ("ends", 1), ("begins", 0), ("ends", 0)),
    ]
    fractions = [event.fraction for event in events if event.kind == "begins"]
    assert fractions == [10 / 24, 0.0, 19 / 24], "they continue and do not start again"
    assert len(started) == 3  # one of the first driver; of the second driver one, and its replacement
    for run in runs:
        assert weights(tmp_path, run) == weights(alone, run)


def test_one_that_cannot_be_trained_takes_no_other_down_and_one_that_another_process_has_is_waited_for(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "BUSY_PAUSE", 0.0)
    held = runs[0]
    missing = Run("npz:/nowhere/digits.npz", SPECS[0], held.recipe, 0)
    wild = Run(held.data, SPECS[0], replace(find_recipe("mini"), **read_changes({**CHANGES, "lr": "10000"})), 0)
    events = []
    with ExitStack() as other:
        other.enter_context(lock_folder(tmp_path / held.folder))
        for event in train_here([held, missing, wild], tmp_path):
            events.append(event)
            if event.index == 2:
                other.close()
    assert events[0] == Event("busy", 0, message=f"process {os.getpid()} is training it")
    assert [event.kind for event in events].count("busy") == 1
    last = {event.index: event for event in events}
    error = read_result(tmp_path / held.folder / "result.json").error
    assert last[0] == events[-1] == Event("ends", 0, 1.0, error, "finished")
    assert last[1].kind == "fails"
    assert "/nowhere/digits.npz" in last[1].message
    assert last[2].kind == "ends"
    assert last[2].message.startswith("diverged: the loss is not finite at epoch 1")


STUB = """
import json, sys
from pathlib import Path
for line in sys.stdin:
    if not line.strip():
        break
    runs = json.loads(line)["runs"]
    def report(kind, index=-1, fraction=0.0, message=""):
        print(json.dumps(dict(kind=kind, index=index, fraction=fraction, error=None, message=message)), flush=True)
{code}
    for index, run in runs:
        report("ends", index, 1.0, "finished")
    report("idle")
"""


@pytest.fixture
def stub(workers: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make one worker, for a GPU, that does this with each assignment before it reports that its runs end."""

    def make(code: str) -> None:
        workers(STUB.format(code=indent(code, "    ")))
        monkeypatch.setattr(local, "slots_for", lambda *_: [Slot("cuda:0", 1)])

    return make


def many(count: int) -> list[Run]:
    return [Run("mnist", SPECS[0], find_recipe("mini"), seed) for seed in range(count)]


def test_one_that_kills_its_process_is_found_among_ten(stub: Callable[[str], None], tmp_path: Path) -> None:
    """Its whole group crashes with it, so groups are halved until it is alone."""
    stub('if any(index == 6 for index, _ in runs): report("advances", 6, 0.25); sys.exit(9)')
    events = list(train_here(many(10), tmp_path))
    crashed = [event.index for event in events if event.kind == "crashes"]
    assert crashed == [*range(10), *range(5, 10), 5, 6, 7, 5, 6, 6, 6]
    assert [event for event in events if event.kind == "fails"] == [
        Event("fails", 6, message="its process died with exit code 9; 3 attempts in a row made no new checkpoint")
    ]
    assert sorted(event.index for event in events if event.kind == "ends") == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    why = "its process died with exit code 9; the run continues from its last checkpoint"
    assert Event("crashes", 6, 0.25, message=why) in events


def test_one_that_makes_a_checkpoint_each_time_is_never_given_up(stub: Callable[[str], None], tmp_path: Path) -> None:
    (run,) = many(1)
    folder = tmp_path / run.folder
    folder.mkdir(parents=True)
    stub(f"""
kept = len(list(Path({str(folder)!r}).glob("*.json")))
if kept < 7:
    (Path({str(folder)!r}) / f"checkpoint-00000-{{kept:06d}}.json").touch()
    sys.exit(9)
""")
    assert [event.kind for event in train_here([run], tmp_path)] == ["crashes"] * 7 + ["ends"]


def test_busy_runs_of_a_group_are_tried_again_together_and_reported_once(
    stub: Callable[[str], None], tmp_path: Path
) -> None:
    """They are reported once, and do not crash when the process that found them busy dies."""
    stub(f"""
asked = Path({str(tmp_path)!r}) / "asked"
with asked.open("a") as file:
    print([index for index, _ in runs], file=file)
count = len(asked.read_text().splitlines())
if count < 4:
    for index in (1, 2):
        report("busy", index, message="process 7 is training it")
    runs = [one for one in runs if one[0] not in (1, 2)]
if count == 1:
    sys.exit(9)
""")
    events = list(train_here(many(4), tmp_path))
    assert (tmp_path / "asked").read_text().splitlines() == ["[0, 1, 2, 3]", "[0]", "[3]", "[1, 2]"]
    assert [event for event in events if event.kind == "busy"] == [
        Event("busy", index, message="process 7 is training it") for index in (1, 2)
    ]
    assert [event.index for event in events if event.kind == "crashes"] == [0, 3]
    assert sorted(event.index for event in events if event.kind == "ends") == [0, 1, 2, 3]


def test_silence_is_reported_of_the_first_run_that_still_trains(
    stub: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of one that has ended or is busy."""
    stub("""
if len(runs) == 4:
    report("ends", 0, 1.0, "finished")
    report("busy", 1, message="process 7 is training it")
    report("advances", 2, 0.5)
    sys.stdin.readline()
""")
    events = train_here(many(4), tmp_path)
    assert [next(events).kind for _ in range(3)] == ["ends", "busy", "advances"]
    monkeypatch.setattr(local, "SILENCE", 0.1)
    assert [next(events) for _ in range(2)] == [Event("silent", 2, 0.5)] * 2
    events.close()


OVERLAPPING = """
import os, time
place = Path({place!r})
first = runs[0][0]
(place / f"{{first}}").touch()
def train_until(*numbers):
    # always nearly done, until the groups that begin with these runs have begun or failed
    for step in range(1, 300):
        for index, _ in runs:
            report("advances", index, 1 - 2.0**-step)
        if any((place / str(number)).exists() for number in numbers):
            break
        time.sleep(0.1)
def fail():
    for index, _ in runs:
        report("fails", index, message="CUDA out of memory")
    report("idle")
time.sleep(0.1)
for index, _ in runs:
    report("begins", index)
{code}
"""


@pytest.fixture
def overlapping(
    stub: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[Event]]:
    """Train six runs on one GPU, two at once, in workers that do this; return the events but begins and advances."""

    def make(code: str, runs: int = 6, at_once: int = 2, slots: Sequence[Slot] = (Slot("cuda:0", 1),)) -> list[Event]:
        monkeypatch.setattr(local, "MOST_AT_ONCE", at_once)
        stub(OVERLAPPING.format(place=str(tmp_path), code=code))
        monkeypatch.setattr(local, "slots_for", lambda *_: list(slots))
        return [event for event in train_here(many(runs), tmp_path) if event.kind not in ("begins", "advances")]

    return make


def ended(events: list[Event]) -> list[int]:
    return sorted(event.index for event in events if event.kind == "ends")


def test_the_next_group_of_a_gpu_is_prepared_before_the_last_one_ends(
    overlapping: Callable[..., list[Event]], started: list[WorkerProcess]
) -> None:
    """Each group but the last waits for the next one to begin, so these three processes overlap."""
    events = overlapping("if first < 4: train_until(first + 2)")
    assert {event.kind for event in events} == {"ends"}
    assert ended(events) == [*range(6)]
    assert len(started) == 3


def test_a_run_that_trains_alone_keeps_the_gpu_to_itself(
    overlapping: Callable[..., list[Event]], started: list[WorkerProcess]
) -> None:
    events = overlapping("for step in range(1, 9): report('advances', first, 1 - 2.0**-step); time.sleep(0.05)", 3, 1)
    assert ended(events) == [0, 1, 2]
    assert len(started) == 1


def test_nothing_is_prepared_beside_the_only_run_of_a_group_that_has_room(
    overlapping: Callable[..., list[Event]], started: list[WorkerProcess]
) -> None:
    events = overlapping(
        """report("ends", first, 1.0, "finished")
for step in range(1, 9): report("advances", first + 1, 1 - 2.0**-step); time.sleep(0.05)"""
    )
    assert ended(events) == [*range(6)]
    assert len(started) == 1


def test_on_cpus_a_run_that_fails_is_not_tried_again(overlapping: Callable[..., list[Event]]) -> None:
    """Its workers have slots that are equal, and share no memory of a GPU."""
    events = overlapping("if first == 1: fail(); continue", slots=[Slot("cpu", 1)] * 2)
    assert [event.index for event in events if event.kind == "fails"] == [1]
    assert ended(events) == [0, 2, 3, 4, 5]


@pytest.mark.parametrize("younger", [True, False])
def test_where_a_gpu_lacks_memory_for_two_the_runs_that_failed_are_tried_again(
    overlapping: Callable[..., list[Event]], started: list[WorkerProcess], tmp_path: Path, younger: bool
) -> None:
    """Either worker may be the one that fails. Afterwards none overlap."""
    fails, other = ("2", "0") if younger else ("0", "2")
    code = f"""if first == {fails} and not (place / "tried").exists():
    if {fails} == 0: train_until("2")
    fail()
    (place / "tried").touch()
    continue
if first == {other}: train_until("tried")"""
    events = overlapping(code)
    assert {event.kind for event in events} == {"ends"}
    assert ended(events) == [*range(6)]
    assert len(started) == 2


LEAVING = """
if first == 0:
    train_until("2")
    for index, _ in runs: report("ends", index, 1.0, "finished")
    report("idle")
    sys.stdin.readline()
    (place / "leaving").touch()
    for _ in range(200):
        if (place / "tried").exists(): break
        time.sleep(0.05)
    break
if first == 2:
    while not (place / "leaving").exists(): time.sleep(0.05)
"""


def test_a_process_that_is_leaving_still_has_its_memory(
    overlapping: Callable[..., list[Event]], started: list[WorkerProcess]
) -> None:
    """The third group is assigned, and fails, when the first process has ended its runs, and is not gone yet."""
    events = overlapping(
        LEAVING
        + """
if first >= 4 and not (place / "tried").exists():
    fail()
    (place / "tried").touch()
    continue"""
    )
    assert {event.kind for event in events} == {"ends"}
    assert ended(events) == [*range(6)]
    assert len(started) == 2


@pytest.mark.parametrize(("end", "attempts"), [("fail(); continue", 4), ("sys.exit(9)", 6)])
def test_a_run_that_always_fails_is_given_up_though_a_process_never_leaves(
    overlapping: Callable[..., list[Event]], tmp_path: Path, end: str, attempts: int
) -> None:
    """Three failures are forgiven; a crash is then tried three times, as it would be without another process."""
    events = overlapping(
        LEAVING.replace("200", "30")
        + f"""
if first >= 4:
    with (place / "log").open("a") as log: print([index for index, _ in runs], file=log)
    {end}"""
    )
    assert [event.index for event in events if event.kind == "fails"] in ([4, 5], [5, 4])
    assert ended(events) == [*range(4)]
    tried = (tmp_path / "log").read_text().splitlines()
    assert sum("5" in line for line in tried) <= attempts


def test_crashes_beside_another_process_count_against_no_run(
    overlapping: Callable[..., list[Event]], started: list[WorkerProcess]
) -> None:
    events = overlapping(
        """if first == 0: train_until("tried")
elif not (place / "tried").exists(): (place / "tried").touch(); sys.exit(9)"""
    )
    assert [event.index for event in events if event.kind == "crashes"] == [2, 3]
    assert ended(events) == [*range(6)]
    assert len(started) in (2, 3)  # a third where the first has left before the death of the second is noticed


def test_a_run_that_failed_and_was_put_back_is_assigned_once_when_its_process_dies(
    overlapping: Callable[..., list[Event]], tmp_path: Path
) -> None:
    events = overlapping(
        """with (place / "log").open("a") as log: print([index for index, _ in runs], file=log)
if first == 0: train_until("tried")
elif not (place / "tried").exists():
    report("fails", 2, message="CUDA out of memory")
    (place / "tried").touch()
    sys.exit(9)"""
    )
    assert sorted((tmp_path / "log").read_text().splitlines()) == ["[0, 1]", "[2, 3]", "[2]", "[3]", "[4, 5]"]
    assert ended(events) == [*range(6)]


def test_a_large_network_shares_its_group_with_no_other() -> None:
    slots = [Slot("cuda:0", 1)]
    small = [Run("mnist", spec, find_recipe("fast-mnist"), seed) for spec in SPECS for seed in range(2)]
    wide = [
        Run("cifar10", spec, find_recipe("fast-cifar"), seed)
        for spec in ("Identity@k=8_8", "ResNet@k=120_120_120", "RKCNN-R-2@k=4", "RKCNN-E-2@k=4")
        for seed in range(2)
    ]

    def indices(runs: list[Run], slots: list[Slot]) -> list[list[int]]:
        return [[index for index, _ in group] for group in group_runs(runs, slots)]

    assert indices(small, slots) == [[0, 1, 2, 3]]
    assert indices(wide, slots) == [[0, 1], [2, 3], [4, 5, 6, 7]]
    assert indices(small, slots * 2) == [[0, 1], [2, 3]]
    assert indices(small, [Slot("cpu", 1)]) == [[0], [1], [2], [3]]
    assert indices(many(12), slots) == [list(range(10)), [10, 11]]


@pytest.mark.parametrize("second", [KeyboardInterrupt, SystemExit(143)])
def test_asked_to_stop_twice_it_kills_its_workers(
    stub: Callable[[str], None],
    started: list[WorkerProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    second: BaseException | type[BaseException],
) -> None:
    stub("""
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
report("advances", 0, 0.5)
time.sleep(600)
""")
    events = train_here(many(1), tmp_path)
    assert next(events).kind == "advances"
    wait = subprocess.Popen.wait

    def ask_again(process: subprocess.Popen[str], timeout: float | None = None) -> int:
        if timeout is not None:  # the driver's, not the listener's
            raise second
        return wait(process)

    monkeypatch.setattr(subprocess.Popen, "wait", ask_again)
    events.close()
    (worker,) = started
    assert worker.process.returncode == -signal.SIGKILL


def test_asked_to_stop_it_does_not_wait_for_a_worker_that_still_prepares(
    stub: Callable[[str], None], started: list[WorkerProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be compiling for a minute, and the runs' checkpoints are already there; one that trains is waited for."""
    stub("""
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if runs[0][0] == 0:
    report("begins", 0)
else:
    time.sleep(600)
""")
    monkeypatch.setattr(local, "slots_for", lambda *_: [Slot("cuda:0", 1), Slot("cuda:1", 1)])
    events = train_here(many(2), tmp_path)
    assert next(events).kind == "begins"
    events.close()
    assert [worker.process.returncode for worker in started] == [0, -signal.SIGKILL]


def test_asked_to_stop_it_waits_for_a_worker_whose_beginning_was_not_read_yet(
    stub: Callable[[str], None], started: list[WorkerProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after Ctrl-Z and fg: the driver reads nothing for a while."""
    stub(f"""
import pathlib
report("begins", runs[0][0])
pathlib.Path({str(tmp_path)!r}, f"begun-{{runs[0][0]}}").touch()
""")
    monkeypatch.setattr(local, "slots_for", lambda *_: [Slot("cuda:0", 1), Slot("cuda:1", 1)])
    events = train_here(many(2), tmp_path)
    assert next(events).kind == "begins"
    while len(list(tmp_path.glob("begun-*"))) < 2:
        time.sleep(0.05)
    time.sleep(0.2)  # the listener's thread takes the line
    events.close()
    assert [worker.process.returncode for worker in started] == [0, 0]


@pytest.mark.parametrize(("count", "threads"), [(1, [2]), (2, [1, 1]), (9, [1, 1])])
def test_cores_are_divided_among_slots(count: int, threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "count_cores", lambda: 2)
    assert [slot.threads for slot in slots_for("cpu", count)] == threads


def test_each_gpu_is_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "pick_device", lambda name: torch.device("cuda" if name == "auto" else name))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert [slot.device for slot in slots_for("auto", 9)] == [f"cuda:{i}" for i in range(4)]
    assert [slot.device for slot in slots_for("auto", 2)] == ["cuda:0", "cuda:1"]
    assert [slot.device for slot in slots_for("cuda:3", 9)] == ["cuda:3"]
