"""Rules for all tests: threads, where data goes, and which tests may be skipped."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

# a shared core can be slow for a moment
settings.register_profile("rkcnn", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rkcnn")

MAY_SKIP = ("GPU", "timm", "../shared", "Chromium", "jedi", "triton")  # everything else must be there when CI=true
SHARED = Path(os.environ.get("RKCNN_SHARED") or Path(__file__).parents[2] / "shared")


signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job, and its children, would ignore it
torch.set_num_threads(1)  # two workers with two threads each on two cores run 6 times slower than with one each


def pytest_configure(config: pytest.Config) -> None:
    """Keep data in a folder of this session, not in the cache of whoever runs the tests."""
    if "RKCNN_DATA" not in os.environ:  # xdist's workers inherit it
        folder = tempfile.TemporaryDirectory(prefix="rkcnn-tests-")
        os.environ["RKCNN_DATA"] = folder.name
        config.add_cleanup(folder.cleanup)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of files that are not in ../shared, and start those that take minutes before the others."""
    for item in items:
        for marker in item.iter_markers("shared"):
            if not (SHARED / marker.args[0]).exists():
                item.add_marker(pytest.mark.skip(reason=f"needs ../shared/{marker.args[0]}"))
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[str, Callable[[Path], object]], Path]:
    """A function that returns a folder of that name; the first worker that asks for it fills it with `make`."""
    base = tmp_path_factory.getbasetemp()
    common = base if worker_id == "master" else base.parent

    def fill(name: str, make: Callable[[Path], object]) -> Path:
        folder = common / f"once-{name}"
        with (common / f"once-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                part = folder.with_suffix(".part")
                shutil.rmtree(part, ignore_errors=True)  # another worker may have failed there
                part.mkdir()
                make(part)
                part.rename(folder)
        return folder

    return fill


@pytest.fixture(scope="session")
def rows(once: Callable[[str, Callable[[Path], object]], Path]) -> list[dict[str, Any]]:
    """The output of `rkcnn models --json`, made once: it takes 15 s on one core."""

    def count(folder: Path) -> None:
        done = subprocess.run([sys.executable, "-m", "rkcnn", "models", "--json"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        (folder / "rows.json").write_text(done.stdout)

    answer: list[dict[str, Any]] = json.loads((once("models", count) / "rows.json").read_text())
    return answer


@pytest.fixture(scope="session")
def shipped(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A folder with a run of a few steps, below runs/, and its weights as the package would have them, in weights/."""

    def make(folder: Path) -> None:
        from rkcnn.use.pretrained.ship import ship
        from rkcnn.use.train import train

        steps = {"epochs": 2, "milestones": (), "max_steps_per_epoch": 30}
        done = train("RKCNN-E-2@k=4", "mnist-mini", out=folder / "runs", progress=False, **steps)  # type: ignore[call-overload]
        ship(done.folder, folder / "weights", "cpu")

    return once("shipped", make)


@pytest.fixture
def pretrained(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of pretrained weights of a small network, in place of those of the package."""
    from rkcnn.use.pretrained import catalogue

    monkeypatch.setattr(catalogue, "FOLDER", shipped / "weights")
    return "RKCNN-E-2@k=4.mnist-mini"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI=true, fail a test that is skipped for a missing extra or compiler."""
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(word in reason for word in MAY_SKIP):
            report.outcome = "failed"
            report.longrepr = f"skipped in CI: {reason}"
    return report
