"""Runs on a real Ray cluster of two CPUs: the same weights as at home, whoever dies on the way."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from rkcnn.data.load import load
from rkcnn.data.sources import Sources
from rkcnn.error import InputError
from rkcnn.record.lock import locked
from rkcnn.record.result import read_result
from rkcnn.record.run import Run
from rkcnn.reproduce.event import Event
from rkcnn.reproduce.on_ray import device_for, reproduce_on_ray
from rkcnn.reproduce.parcel import unpack_checkpoints
from rkcnn.run.together import Way
from rkcnn.run.train import train
from rkcnn.train.recipe import recipe_of

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


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a cluster that was there before, as `ray start --head` makes one."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    yield made.address
    made.shutdown()


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """400 + 100 real digits as an own set: seven steps an epoch, the last a kept partial batch of 16."""
    folder = tmp_path_factory.mktemp("data")
    parts = {}
    for images, name, count in zip(load("mnist-mini"), ("train", "test"), (400, 100), strict=True):
        parts[f"x_{name}"] = images.pixels[:count, 0].numpy()
        parts[f"y_{name}"] = images.labels[:count].numpy()
    np.savez(folder / "digits.npz", **parts)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RKCNN_DATA", str(folder / "data"))
        yield f"npz:{folder / 'digits.npz'}"


@pytest.fixture(scope="module")
def home(digits: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two seeds that were trained in this process, undisturbed."""
    assert torch.get_num_threads() == 1
    out = tmp_path_factory.mktemp("home")
    train(SPEC, digits, RECIPE, (0, 1), device="cpu", engine="eager", out=out, keep_seconds=NEVER)
    return out


def run_of(digits: str, seed: int = 0) -> Run:
    return Run(digits, SPEC, RECIPE, seed)


def go(
    runs: list[Run], out: Path, keep: float, address: str | None = None, store: Path | None = None
) -> Generator[Event, None, None]:
    return reproduce_on_ray(runs, Way(out, "cpu", "eager", keep_seconds=keep), Sources(), address, store)


def share_at(checkpoint: str) -> float:
    _, epoch, step = checkpoint.split("-")
    return (int(epoch) * 7 + int(step)) / 105


def same_files(run: Run, ours: Path, home: Path) -> bool:
    names = ("weights.safetensors", "predictions.npy")
    return all((ours / run.folder / name).read_bytes() == (home / run.folder / name).read_bytes() for name in names)


def test_a_cluster_of_its_own_trains_as_at_home_though_a_worker_is_killed(
    digits: str, home: Path, scratch: Path, tmp_path: Path
) -> None:
    import ray

    out = tmp_path / "out"
    runs = [run_of(digits, seed) for seed in range(3)]
    unpack_checkpoints(
        out / runs[2].folder, {"checkpoint-00001-000000.json": b"{}", "checkpoint-00001-000000.safetensors": b""}
    )
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
            time.sleep(0.1)
            shutil.rmtree(scratch / mine)
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) == before
    last = {event.run: event for event in events}
    for place, run in enumerate(runs[:2]):
        assert last[place].what == "ends", last
        result, known = (read_result(folder / run.folder / "result.json") for folder in (out, home))
        assert last[place].error == result.error == known.error
        assert [epoch["loss"] for epoch in result.epochs] == [epoch["loss"] for epoch in known.epochs]
        assert result.machine["threads"] == 1
        assert same_files(run, out, home)
        assert len(list((out / run.folder).glob("checkpoint-*"))) == 4
    assert stood
    first, second = (event.share for event in events if event.run == 0 and event.what == "begins")
    assert first == 0
    assert second >= share_at(stood), "it went on, and not from the beginning"
    assert [event.share for event in events if event.run == 1 and event.what == "begins"] == [0]
    assert last[2].what == "fails"
    assert "every checkpoint in" in last[2].text
    assert not list(scratch.glob("rkcnn-*"))


def test_a_cluster_that_is_there_stays_and_a_shared_folder_keeps_what_was_closed_early(
    cluster: str, digits: str, home: Path, tmp_path: Path
) -> None:
    run, out, store = run_of(digits), tmp_path / "out", tmp_path / "store"
    events = go([run, run_of(digits, 1), run_of(digits, 2)], out, NEVER, cluster, store)
    assert any(event.run == 0 and event.share > 0.02 for event in events)
    events.close()
    stood = max(path.stem for path in (store / run.folder).glob("checkpoint-*.json"))
    assert share_at(stood) > 0.02
    assert not list(out.rglob("checkpoint-*"))
    begins, *_, ends = go([run], out, NEVER, cluster, store)
    assert (begins.what, begins.share) == ("begins", share_at(stood))
    assert ends.what == "ends"
    assert same_files(run, out, home)
    assert not list(out.rglob("checkpoint-*"))


def test_a_folder_in_use_fails_and_a_finished_run_ends_without_a_cluster(
    digits: str, home: Path, tmp_path: Path
) -> None:
    runs = [run_of(digits, 0), run_of(digits, 5)]
    with locked(home / runs[1].folder):
        ends, fails = go(runs, home, NEVER, "127.0.0.1:1")
    assert (ends.what, ends.run, ends.text) == ("ends", 0, "finished")
    assert (fails.what, fails.run) == ("fails", 1)
    assert "is training in" in fails.text


def test_a_wrong_address_is_one_sentence_and_quick(digits: str, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match=r"no Ray cluster answers at 127.0.0.1:1 .*; start one"):
        next(go([run_of(digits)], tmp_path, NEVER, "127.0.0.1:1"))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("device", "gpus", "told"),
    [("auto", 0.0, "cpu"), ("auto", 2.0, "auto"), ("cpu", 2.0, "cpu"), ("cuda", 1.0, "cuda")],
)
def test_a_task_is_told_cpu_unless_the_cluster_has_gpus(device: str, gpus: float, told: str) -> None:
    assert device_for(device, gpus) == told


def test_devices_that_a_cluster_can_not_give() -> None:
    with pytest.raises(InputError, match="has no GPU"):
        device_for("cuda", 0.0)
    with pytest.raises(InputError, match="say cpu, cuda or auto"):
        device_for("cuda:1", 2.0)
