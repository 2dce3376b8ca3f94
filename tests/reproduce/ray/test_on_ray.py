"""Runs on a real Ray cluster of two CPUs: the same weights as in this process, whatever crashes on the way."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from digits import write_digits
from rkcnn.data.options import Sources
from rkcnn.disk import DiskError, lock_folder
from rkcnn.error import InputError
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.result import read_result
from rkcnn.record.run import Run
from rkcnn.reproduce.events import Event
from rkcnn.reproduce.ray import driver
from rkcnn.reproduce.ray.driver import reproduce_on_ray, task_device
from rkcnn.reproduce.ray.transfer import Files, unpack_checkpoints
from rkcnn.run.side_by_side import Execution
from rkcnn.run.train import train

SPEC = "RKCNN-R-2@k=4"
RECIPE = replace(find_recipe("mini"), epochs=4, batch=64, drop_last=False)  # 28 steps
NEVER = 1000.0  # seconds: no checkpoint but the first and the last


@pytest.fixture(scope="module", autouse=True)
def token() -> Iterator[None]:
    """The secret by which processes join a cluster; without it Ray writes one into the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        yield
    os.environ.pop("RAY_AUTH_MODE", None)  # Ray sets it for a cluster of its own


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tasks of a cluster that is started in the test make their folders."""
    monkeypatch.setenv("RAY_TMPDIR", tempfile.gettempdir())  # its sockets need a short path
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of an existing cluster, such as `ray start --head` starts."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        yield made.address
        made.shutdown()


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """400 + 100 real digits as a data set: seven steps an epoch, the last with a partial batch of 16."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RKCNN_DATA", str(folder / "data"))
        yield write_digits(folder / "digits.npz")


@pytest.fixture(scope="module")
def home(digits: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was trained in this process without interruption."""
    assert torch.get_num_threads() == 1
    out = tmp_path_factory.mktemp("home")
    train(SPEC, digits, RECIPE, (0,), device="cpu", engine="eager", out=out, checkpoint_interval=NEVER)
    return out


@pytest.fixture
def pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Let the run with seed 0 wait, before that step of that epoch, until it is cancelled or killed; once.

    However busy the machine is, the run can't end before the test has done with it what it wants to.
    """

    def make(epoch: int, step: int) -> None:
        paused = str(tmp_path / "paused")

        def carry_out(*arguments: Any) -> Any:  # in a process of the cluster, so it can't use names of this module
            import signal
            import time
            from pathlib import Path

            from rkcnn.fit.trainer import Trainer
            from rkcnn.reproduce.ray.task import carry_out_task

            patched: Any = Trainer
            learn = patched.learn

            def wait_and_learn(trainer: Trainer, *batch: Any) -> None:
                if (trainer.seed, trainer.epoch, trainer.step) == (0, epoch, step) and not Path(paused).exists():
                    handler: Any = signal.getsignal(signal.SIGINT)
                    cancelled: list[int] = []

                    def note(number: int, frame: Any) -> None:
                        cancelled.append(number)
                        handler(number, frame)

                    signal.signal(signal.SIGINT, note)  # which ray.cancel raises
                    Path(paused).touch()
                    while not cancelled:
                        time.sleep(0.01)
                    signal.signal(signal.SIGINT, handler)
                learn(trainer, *batch)

            patched.learn = wait_and_learn
            try:
                return carry_out_task(*arguments)
            finally:
                patched.learn = learn

        monkeypatch.setattr(driver, "carry_out_task", carry_out)

    return make


def run_of(digits: str, seed: int = 0) -> Run:
    return Run(digits, SPEC, RECIPE, seed)


def train_on_ray(
    runs: list[Run], out: Path, keep: float, address: str | None = None, store: Path | None = None
) -> Generator[Event, None, None]:
    return reproduce_on_ray(runs, Execution(out, "cpu", "eager", checkpoint_interval=keep), Sources(), address, store)


def fraction_at(checkpoint: str) -> float:
    _, epoch, step = checkpoint.split("-")
    return (int(epoch) * 7 + int(step)) / 28


def same_files(run: Run, ours: Path, home: Path) -> bool:
    names = ("weights.safetensors", "predictions.npy", "labels.npy", "config.json")
    rows = (ours / run.folder / "metrics.csv").read_text().splitlines()
    assert len(rows) == 1 + run.recipe.epochs
    return all((ours / run.folder / name).read_bytes() == (home / run.folder / name).read_bytes() for name in names)


def test_a_cluster_of_its_own_trains_as_this_process_does_though_a_worker_is_killed(
    digits: str,
    home: Path,
    scratch: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pause: Callable[[int, int], None],
) -> None:
    """Meanwhile another run, whose checkpoints can't be written, fails; it alone."""
    import ray

    def write(folder: Path, files: Files, remedy: str) -> None:
        if folder.name == "seed-1":
            raise DiskError(f"can't write to {folder}: the disk is full; name another --out")
        unpack_checkpoints(folder, files, remedy)

    monkeypatch.setattr(driver, "unpack_checkpoints", write)
    pause(2, 3)
    out, runs = tmp_path / "out", [run_of(digits, seed) for seed in (0, 1)]
    before = signal.getsignal(signal.SIGTERM)
    kept: list[str] = []

    def kill_the_worker() -> None:
        while not (kept and (tmp_path / "paused").exists()):  # killed earlier, it would pause after its return
            time.sleep(0.05)
            kept.extend(sorted(path.stem for path in (out / runs[0].folder).glob("checkpoint-00002-*.json")))
        (there,) = scratch.glob("rkcnn-*/*/*/*/seed-0")
        os.kill(int(there.relative_to(scratch).parts[0].split("-")[1]), signal.SIGKILL)

    killer = threading.Thread(target=kill_the_worker, daemon=True)
    killer.start()
    events = list(train_on_ray(runs, out, 0.0))
    killer.join()
    assert not ray.is_initialized()
    assert signal.getsignal(signal.SIGTERM) == before
    reported = [event for event in events if event.index == 0 and event.kind != "advances"]
    assert [event.kind for event in reported] == ["begins", "crashes", "begins", "ends"]
    first, crashes, second, ends = reported
    assert crashes.message.startswith("its process died (WorkerCrashedError, ")
    assert first.fraction == 0
    assert second.fraction >= fraction_at(kept[-1]), "it continues, and not from the beginning"
    result, known = (read_result(folder / runs[0].folder / "result.json") for folder in (out, home))
    assert ends.error == result.error == known.error
    assert [epoch.loss for epoch in result.epochs] == [epoch.loss for epoch in known.epochs]
    assert result.machine["threads"] == 1
    assert same_files(runs[0], out, home)
    assert len(list((out / runs[0].folder).glob("checkpoint-*"))) == 4
    (fails,) = [event for event in events if event.index == 1 and event.kind not in ("begins", "advances")]
    assert fails.kind == "fails"
    assert "the disk is full" in fails.message
    assert not list(scratch.glob("rkcnn-*")), "what the killed process left is deleted too"


def test_an_existing_cluster_stays_and_a_shared_folder_keeps_what_was_closed_early(
    cluster: str, digits: str, home: Path, tmp_path: Path, pause: Callable[[int, int], None]
) -> None:
    pause(1, 3)
    run, out, store = run_of(digits), tmp_path / "out", tmp_path / "store"
    events = train_on_ray([run], out, NEVER, cluster, store)
    assert any(event.fraction > 0.02 for event in events)
    while not (tmp_path / "paused").exists():  # cancelled earlier, it would stop at an earlier step
        time.sleep(0.05)
    events.close()
    kept = max(path.stem for path in (store / run.folder).glob("checkpoint-*.json"))
    assert kept == "checkpoint-00001-000004", "it did the step in which it was cancelled"
    assert not list(out.rglob("checkpoint-*"))
    begins, *_, ends = train_on_ray([run], out, NEVER, cluster, store)
    assert (begins.kind, begins.fraction) == ("begins", fraction_at(kept))
    assert ends.kind == "ends"
    assert same_files(run, out, home)
    assert not list(out.rglob("checkpoint-*"))


def test_a_folder_in_use_fails_and_a_finished_run_ends(cluster: str, digits: str, home: Path, tmp_path: Path) -> None:
    runs = [run_of(digits, seed) for seed in (0, 5, 6)]
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / runs[2].folder.parts[0]).write_text("")
    shutil.copytree(home, tmp_path / "out")
    with lock_folder(tmp_path / "out" / runs[1].folder):
        ends, *_ = train_on_ray(runs[:1], tmp_path / "out", NEVER, cluster)
        in_use, no_store = train_on_ray(runs[1:], tmp_path / "out", NEVER, cluster, tmp_path / "store")
    assert (ends.kind, ends.index, ends.message) == ("ends", 0, "finished")
    assert in_use.kind == "fails"
    assert in_use.message == (
        f"process {os.getpid()} is training it in {tmp_path / 'out' / runs[1].folder}; "
        "when that process has ended, the same command continues this run"
    )
    assert no_store.kind == "fails"
    assert no_store.message.endswith("; name another `store=...`")


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
    ("device", "gpus", "given"),
    [("auto", 0.0, "cpu"), ("auto", 2.0, "auto"), ("cpu", 2.0, "cpu"), ("cuda", 1.0, "cuda")],
)
def test_a_task_gets_the_cpu_unless_the_cluster_has_gpus(device: str, gpus: float, given: str) -> None:
    assert task_device(device, gpus) == given


def test_devices_that_a_cluster_can_not_give() -> None:
    with pytest.raises(InputError, match="has no GPU"):
        task_device("cuda", 0.0)
