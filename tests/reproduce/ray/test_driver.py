"""A driver among crashes and full disks, with a stand-in for the cluster; test_on_ray.py has real ones."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rkcnn.data.options import Sources
from rkcnn.disk import DiskError
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.run import Run
from rkcnn.reproduce.events import Event
from rkcnn.reproduce.ray import driver
from rkcnn.reproduce.ray.driver import Driver
from rkcnn.reproduce.ray.transfer import Files, Mailbox
from rkcnn.run.side_by_side import Execution

RUNS = {index: Run("mnist-mini", "ResNet@k=4", find_recipe("smoke"), index) for index in (0, 1)}
CRASHES, CONTINUES = "crashes", "continues"  # what may happen to a task beside its answer


class Cluster:
    """Ray as the driver sees it: `carry_out` returns what a task answers, or that it crashes or never ends."""

    def __init__(self, carry_out: Callable[[int, Mailbox], Any]) -> None:
        import ray

        self.exceptions, self.carry_out = ray.exceptions, carry_out
        self.mailbox = Mailbox()
        self.outcomes: dict[int, Any] = {}
        self.cancelled: list[int] = []

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "ab" * 28)

    def remote(self, thing: Any) -> Any:
        made = SimpleNamespace(fetch=SimpleNamespace(remote=lambda: self.mailbox.fetch))
        start = (lambda: made) if thing is Mailbox else self._start
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=start))

    def _start(self, values: dict[str, Any], *_: Any) -> int:
        number = len(self.outcomes)
        self.outcomes[number] = self.carry_out(values["index"], self.mailbox)
        return number

    def put(self, thing: Any) -> Any:
        return thing

    def get(self, what: Any) -> Any:
        if callable(what):
            return what()
        if self.outcomes[what] == CRASHES:
            raise self.exceptions.WorkerCrashedError
        return self.outcomes[what]

    def wait(self, tasks: list[int], **_: Any) -> tuple[list[int], list[int]]:
        done = [task for task in tasks if self.outcomes[task] != CONTINUES]
        return done, [task for task in tasks if task not in done]

    def cancel(self, task: int, recursive: bool) -> None:
        self.cancelled.append(task)
        if self.outcomes[task] == CONTINUES:
            self.outcomes[task] = None


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(driver, "load_data_set", lambda *_: ({}, {}))
    monkeypatch.setattr(driver, "images_to_values", dict)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of run folders on a full disk."""
    found: set[str] = set()
    for name in ("unpack_checkpoints", "unpack_results"):
        write = getattr(driver, name)

        def refuse(folder: Path, files: Files, remedy: str, write: Callable[[Path, Files, str], None] = write) -> None:
            if folder.name in found:
                raise DiskError(f"can't write to {folder.name}: the disk is full; name another --out")
            folder.mkdir(parents=True, exist_ok=True)
            write(folder, files, remedy)

        monkeypatch.setattr(driver, name, refuse)
    return found


def checkpoint(step: int) -> Files:
    return {f"checkpoint-00000-{step:06d}.{end}": b"%d" % step for end in ("json", "safetensors")}


def ended(index: int) -> tuple[str, Files]:
    return Event("ends", index, 1.0, 0.5, "finished").to_json(), {"result.json": b"{}"}


def drive(cluster: Cluster, out: Path) -> Generator[Event, None, None]:
    return Driver(cluster, RUNS, Execution(out, "cpu"), None, "cpu").run(Sources())


def test_a_run_with_progress_is_submitted_again_and_one_without_is_given_up(tmp_path: Path) -> None:
    attempts = {0: 0, 1: 0}

    def carry_out(index: int, mailbox: Mailbox) -> Any:
        attempts[index] += 1
        if index == 0:
            mailbox.put_checkpoint(0, checkpoint(attempts[0]))
            mailbox.put_event(Event("advances", 0, attempts[0] / 8).to_json())
        if attempts[0] == 8 and index == 0:
            return ended(0)
        return CRASHES if attempts[index] % 2 else None  # None: asked to stop

    events = list(drive(Cluster(carry_out), tmp_path))
    first = [event for event in events if event.index == 0]
    assert [event.kind for event in first] == [*["advances", "crashes"] * 7, "advances", "ends"]
    assert first[1].fraction == 1 / 8
    assert first[1].message.startswith("its process died (WorkerCrashedError, The worker died unexpectedly")
    assert first[1].message.endswith("; the run continues from its last checkpoint")
    assert first[3].message == "its machine asked it to stop; the run continues from its last checkpoint"
    second = [event for event in events if event.index == 1]
    assert [event.kind for event in second] == ["crashes", "crashes", "fails"]
    assert second[2].message.endswith("; 3 attempts in a row made no new checkpoint")


def test_a_full_disk_fails_its_run_alone(tmp_path: Path, full: set[str]) -> None:
    """Both checkpoints come with one fetch, which can't be repeated; one task is cancelled, the other continues."""

    def carry_out(index: int, mailbox: Mailbox) -> Any:
        mailbox.put_checkpoint(index, checkpoint(3))
        mailbox.put_event(Event("advances", index, 0.5).to_json())
        return ended(1) if index else CONTINUES

    full.add("seed-0")
    cluster = Cluster(carry_out)
    assert list(drive(cluster, tmp_path)) == [
        Event("fails", 0, message="can't write to seed-0: the disk is full; name another --out"),
        Event("advances", 1, 0.5),
        Event("ends", 1, 1.0, 0.5, "finished"),
    ]
    assert cluster.cancelled == [0]
    assert {path.name for path in (tmp_path / RUNS[1].folder).iterdir()} == {*checkpoint(3), "result.json"}


def test_a_result_that_cannot_be_written_fails_its_run_alone(tmp_path: Path, full: set[str]) -> None:
    full.add("seed-0")
    events = list(drive(Cluster(lambda index, mailbox: ended(index)), tmp_path))
    assert [(event.kind, event.index) for event in events] == [("fails", 0), ("ends", 1)]


def test_closed_early_with_a_full_disk_it_writes_what_it_can(tmp_path: Path, full: set[str]) -> None:
    def carry_out(index: int, mailbox: Mailbox) -> Any:
        mailbox.put_event(Event("begins", index).to_json())
        return CONTINUES

    cluster = Cluster(carry_out)
    events = drive(cluster, tmp_path)
    assert next(events) == Event("begins", 0)
    full.add("seed-0")
    for index in RUNS:
        cluster.mailbox.put_checkpoint(index, checkpoint(4))
    events.close()
    assert (tmp_path / RUNS[1].folder / "checkpoint-00000-000004.json").exists()
    assert set(cluster.cancelled) == {0, 1}
