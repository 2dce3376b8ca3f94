"""A driver among deaths and full disks, with a cluster that does as it is told; test_on_ray.py has real ones."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rkcnn.data.options import Sources
from rkcnn.disk import DiskError
from rkcnn.fit.recipe import recipe_of
from rkcnn.record.run import Run
from rkcnn.reproduce import driver
from rkcnn.reproduce.driver import Driver
from rkcnn.reproduce.event import Event
from rkcnn.reproduce.mailbox import Mailbox
from rkcnn.reproduce.parcel import Parcel
from rkcnn.run.side_by_side import Execution

RUNS = {place: Run("mnist-mini", "ResNet@k=4", recipe_of("smoke"), place) for place in (0, 1)}
DIES, GOES = "dies", "goes"


class Cluster:
    """Ray, as far as a driver sees it: `carry_out` says what a task comes to, or that it dies, or goes on for ever."""

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

    def _start(self, facts: dict[str, Any], *_: Any) -> int:
        number = len(self.outcomes)
        self.outcomes[number] = self.carry_out(facts["place"], self.mailbox)
        return number

    def put(self, thing: Any) -> Any:
        return thing

    def get(self, what: Any) -> Any:
        if callable(what):
            return what()
        if self.outcomes[what] == DIES:
            raise self.exceptions.WorkerCrashedError
        return self.outcomes[what]

    def wait(self, tasks: list[int], **_: Any) -> tuple[list[int], list[int]]:
        done = [task for task in tasks if self.outcomes[task] != GOES]
        return done, [task for task in tasks if task not in done]

    def cancel(self, task: int, recursive: bool) -> None:
        self.cancelled.append(task)
        if self.outcomes[task] == GOES:
            self.outcomes[task] = None


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "PAUSE", 0.0)
    monkeypatch.setattr(driver, "load", lambda *_: ({}, {}))
    monkeypatch.setattr(driver, "facts_of", dict)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Folders of runs, by their names, that take nothing more."""
    found: set[str] = set()
    for name in ("unpack_checkpoints", "unpack_results"):
        write = getattr(driver, name)

        def refuse(folder: Path, parcel: Parcel, write: Callable[[Path, Parcel], None] = write) -> None:
            if folder.name in found:
                raise DiskError(f"can't write to {folder.name}: the disk is full; name another --out")
            folder.mkdir(parents=True, exist_ok=True)
            write(folder, parcel)

        monkeypatch.setattr(driver, name, refuse)
    return found


def checkpoint(step: int) -> Parcel:
    return {f"checkpoint-00000-{step:06d}.{end}": b"%d" % step for end in ("json", "safetensors")}


def ended(place: int) -> tuple[str, Parcel]:
    return Event("ends", place, 1.0, 0.5, "finished").to_json(), {"result.json": b"{}"}


def drive(cluster: Cluster, out: Path) -> Generator[Event, None, None]:
    return Driver(cluster, RUNS, Execution(out, "cpu"), None, "cpu").drive(Sources())


def test_one_that_comes_further_is_given_out_for_ever_and_another_given_up(tmp_path: Path) -> None:
    attempts = {0: 0, 1: 0}

    def carry_out(place: int, mailbox: Mailbox) -> Any:
        attempts[place] += 1
        if place == 0:
            mailbox.keep(0, checkpoint(attempts[0]))
            mailbox.tell(Event("moves", 0, attempts[0] / 8).to_json())
        if attempts[0] == 8 and place == 0:
            return ended(0)
        return DIES if attempts[place] % 2 else None  # None: asked to stop

    events = list(drive(Cluster(carry_out), tmp_path))
    first = [event for event in events if event.run == 0]
    assert [event.what for event in first] == [*["moves", "dies"] * 7, "moves", "ends"]
    assert first[1].share == 1 / 8
    assert first[1].text.startswith("its process died (WorkerCrashedError, The worker died unexpectedly")
    assert first[1].text.endswith("; it goes on from its last checkpoint")
    assert first[3].text == "its machine asked it to stop; it goes on from its last checkpoint"
    second = [event for event in events if event.run == 1]
    assert [event.what for event in second] == ["dies", "dies", "fails"]
    assert second[2].text.endswith("; it came no further in 3 attempts")


def test_a_full_disk_fails_its_run_alone(tmp_path: Path, full: set[str]) -> None:
    """Both came with one fetch, which can not be repeated; the task of the one is cancelled, the other goes on."""

    def carry_out(place: int, mailbox: Mailbox) -> Any:
        mailbox.keep(place, checkpoint(3))
        mailbox.tell(Event("moves", place, 0.5).to_json())
        return ended(1) if place else GOES

    full.add("seed-0")
    cluster = Cluster(carry_out)
    assert list(drive(cluster, tmp_path)) == [
        Event("fails", 0, text="can't write to seed-0: the disk is full; name another --out"),
        Event("moves", 1, 0.5),
        Event("ends", 1, 1.0, 0.5, "finished"),
    ]
    assert cluster.cancelled == [0]
    assert {path.name for path in (tmp_path / RUNS[1].folder).iterdir()} == {*checkpoint(3), "result.json"}


def test_a_result_that_cannot_be_written_fails_its_run_alone(tmp_path: Path, full: set[str]) -> None:
    full.add("seed-0")
    events = list(drive(Cluster(lambda place, mailbox: ended(place)), tmp_path))
    assert [(event.what, event.run) for event in events] == [("fails", 0), ("ends", 1)]


def test_closed_early_with_a_full_disk_it_writes_what_it_can(tmp_path: Path, full: set[str]) -> None:
    def carry_out(place: int, mailbox: Mailbox) -> Any:
        mailbox.tell(Event("begins", place).to_json())
        return GOES

    cluster = Cluster(carry_out)
    events = drive(cluster, tmp_path)
    assert next(events) == Event("begins", 0)
    full.add("seed-0")
    for place in RUNS:
        cluster.mailbox.keep(place, checkpoint(4))
    events.close()
    assert (tmp_path / RUNS[1].folder / "checkpoint-00000-000004.json").exists()
    assert set(cluster.cancelled) == {0, 1}
