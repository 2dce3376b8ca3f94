"""Runs on a real Ray cluster of two CPUs: the same weights as at home, whoever dies on the way."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import torch

from digits import write_digits
from rkcnn.data.options import Sources
from rkcnn.disk import DiskError, locked
from rkcnn.error import InputError
from rkcnn.fit.recipe import recipe_of
from rkcnn.record.result import read_result
from rkcnn.record.run import Run
from rkcnn.reproduce import driver
from rkcnn.reproduce.event import Event
from rkcnn.reproduce.on_ray import device_for, reproduce_on_ray
from rkcnn.reproduce.parcel import Parcel, unpack_checkpoints
from rkcnn.run.side_by_side import Execution
from rkcnn.run.train import train

SPEC = "RKCNN-R-2@k=4"
RECIPE = recipe_of("mini", {"epochs": "15", "batch": "64", "drop_last": "off"})  # 105 steps
NEVER = 1000.0  # seconds: no checkpoint but the first and the last


@pytest.fixture(scope="module", autouse=True)
def token() -> Iterator[None]:
    """What a cluster lets processes in by; without one Ray writes one into the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        yield
    os.environ.pop("RAY_AUTH_MODE", None)  # Ray sets it for a cluster of its own


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tasks of a cluster that is started now have their folders."""
    monkeypatch.setenv("RAY_TMPDIR", tempfile.gettempdir())  # its sockets need a short path
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster that was there before, as `ray start --head` makes one."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        yield made.address
        made.shutdown()


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """400 + 100 real digits as an own set: seven steps an epoch, the last a kept partial batch of 16."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RKCNN_DATA", str(folder / "data"))
        yield write_digits(folder / "digits.npz")


@pytest.fixture(scope="module")
def home(digits: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was trained in this process, undisturbed."""
    assert torch.get_num_threads() == 1
    out = tmp_path_factory.mktemp("home")
    train(SPEC, digits, RECIPE, (0,), device="cpu", engine="eager", out=out, keep_seconds=NEVER)
    return out


def run_of(digits: str, seed: int = 0) -> Run:
    return Run(digits, SPEC, RECIPE, seed)


def go(
    runs: list[Run], out: Path, keep: float, address: str | None = None, store: Path | None = None
) -> Generator[Event, None, None]:
    return reproduce_on_ray(runs, Execution(out, "cpu", "eager", keep_seconds=keep), Sources(), address, store)


def share_at(checkpoint: str) -> float:
    _, epoch, step = checkpoint.split("-")
    return (int(epoch) * 7 + int(step)) / 105


def same_files(run: Run, ours: Path, home: Path) -> bool:
    names = ("weights.safetensors", "predictions.npy")
    return all((ours / run.folder / name).read_bytes() == (home / run.folder / name).read_bytes() for name in names)


def test_a_cluster_of_its_own_trains_as_at_home_though_a_worker_is_killed(
    digits: str, home: Path, scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile there is no room for another run: that one fails, alone."""
    import ray

    def write(folder: Path, parcel: Parcel) -> None:
        if folder.name == "seed-1":
            raise DiskError(f"can't write to {folder}: the disk is full; name another --out")
        unpack_checkpoints(folder, parcel)

    monkeypatch.setattr(driver, "unpack_checkpoints", write)
    out, runs = tmp_path / "out", [run_of(digits, seed) for seed in (0, 1)]
    before = signal.getsignal(signal.SIGTERM)
    events, stood = [], ""
    for event in go(runs, out, 0.0):
        events.append(event)
        reached = max((path.stem for path in (out / runs[0].folder).glob("checkpoint-*.json")), default="")
        if not stood and event.run == 0 and reached > "checkpoint-00001":
            stood = reached
            (there,) = scratch.glob("rkcnn-*/*/*/*/seed-0")
            mine = there.relative_to(scratch).parts[0]
            os.kill(int(mine.split("-")[1]), signal.SIGKILL)
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) == before
    news = [event for event in events if event.run == 0 and event.what != "moves"]
    assert [event.what for event in news] == ["begins", "dies", "begins", "ends"]
    first, dies, second, ends = news
    assert dies.text.startswith("its process died (WorkerCrashedError, ")
    assert first.share == 0
    assert second.share >= share_at(stood), "it went on, and not from the beginning"
    result, known = (read_result(folder / runs[0].folder / "result.json") for folder in (out, home))
    assert ends.error == result.error == known.error
    assert [epoch.loss for epoch in result.epochs] == [epoch.loss for epoch in known.epochs]
    assert result.machine["threads"] == 1
    assert same_files(runs[0], out, home)
    assert len(list((out / runs[0].folder).glob("checkpoint-*"))) == 4
    (fails,) = [event for event in events if event.run == 1 and event.what not in ("begins", "moves")]
    assert fails.what == "fails"
    assert "the disk is full" in fails.text
    assert not list(scratch.glob("rkcnn-*")), "swept too is what the killed one left"


def test_a_cluster_that_is_there_stays_and_a_shared_folder_keeps_what_was_closed_early(
    cluster: str, digits: str, home: Path, tmp_path: Path
) -> None:
    run, out, store = run_of(digits), tmp_path / "out", tmp_path / "store"
    events = go([run], out, NEVER, cluster, store)
    assert any(event.share > 0.02 for event in events)
    events.close()
    stood = max(path.stem for path in (store / run.folder).glob("checkpoint-*.json"))
    assert share_at(stood) > 0.02
    assert not list(out.rglob("checkpoint-*"))
    begins, *_, ends = go([run], out, NEVER, cluster, store)
    assert (begins.what, begins.share) == ("begins", share_at(stood))
    assert ends.what == "ends"
    assert same_files(run, out, home)
    assert not list(out.rglob("checkpoint-*"))


def test_a_folder_in_use_fails_and_a_finished_run_ends(cluster: str, digits: str, home: Path, tmp_path: Path) -> None:
    runs = [run_of(digits, seed) for seed in (0, 5, 6)]
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / runs[2].folder.parts[0]).write_text("")
    shutil.copytree(home, tmp_path / "out")
    with locked(tmp_path / "out" / runs[1].folder):
        ends, *_ = go(runs[:1], tmp_path / "out", NEVER, cluster)
        in_use, no_store = go(runs[1:], tmp_path / "out", NEVER, cluster, tmp_path / "store")
    assert (ends.what, ends.run, ends.text) == ("ends", 0, "finished")
    assert in_use.what == "fails"
    assert "is training in" in in_use.text
    assert no_store.what == "fails"
    assert no_store.text.endswith("; name another --store")


@pytest.mark.parametrize(
    ("device", "says"),
    [("cpu", r"no Ray cluster answers at 127.0.0.1:1 .*; start one"), ("cuda:1", "say cpu, cuda or auto")],
)
def test_a_wrong_address_or_device_is_one_sentence_and_leaves_nothing(
    digits: str, tmp_path: Path, device: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        next(reproduce_on_ray([run_of(digits)], Execution(tmp_path, device), Sources(), "127.0.0.1:1", None))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("device", "gpus", "told"),
    [("auto", 0.0, "cpu"), ("auto", 2.0, "auto"), ("cpu", 2.0, "cpu"), ("cuda", 1.0, "cuda")],
)
def test_a_task_is_told_cpu_unless_the_cluster_has_gpus(device: str, gpus: float, told: str) -> None:
    assert device_for(device, gpus) == told


def test_devices_that_a_cluster_can_not_give() -> None:
    with pytest.raises(InputError, match="has no GPU"):
        device_for("cuda", 0.0)
