"""Clusters that can't be joined, each in one sentence; test_on_ray.py joins real ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from rkcnn.error import InputError
from rkcnn.reproduce.ray.cluster import UMASK, join_cluster


@pytest.mark.parametrize("address", ["nonsense", "host:port", "ray://127.0.0.1:10001", "127.0.0.1:99999", "local"])
def test_text_that_is_no_address(address: str) -> None:
    with (
        pytest.raises(InputError, match=f"`address={address}` is no address of a Ray cluster such as"),
        join_cluster(address),
    ):
        pass


def test_auto_is_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(InputError, match=r"no Ray cluster answers at 127\.0\.0\.1:1"), join_cluster("auto"):
        pass


def test_ray_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install .* '\.\[ray\]' in the checkout"), join_cluster(None):
        pass


def test_windows_is_told_to_train_locally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(InputError, match="not supported on Windows; train with `on=local`"), join_cluster(None):
        pass


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)
    os.environ.pop(UMASK, None)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.usefixtures("umask")
def test_a_cluster_of_our_own_is_started_with_files_for_this_user_alone(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """While it starts; afterwards, and in its tasks, the umask is the user's."""
    seen = []

    def init(**options: object) -> None:
        seen.append((os.umask(0o077), os.environ[UMASK]))
        if fails:
            raise RuntimeError("no")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init, shutdown=lambda: None))
    with suppress(InputError), join_cluster(None):
        pass
    assert seen == [(0o077, "22")]
    assert os.umask(0o022) == 0o022


@pytest.mark.usefixtures("umask")
def test_an_existing_cluster_leaves_the_umask(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    stand_in = SimpleNamespace(init=lambda **_: seen.append(os.umask(0o022)), shutdown=lambda: None)
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with join_cluster("auto"):
        pass
    assert seen == [0o022]
    assert UMASK not in os.environ


def test_the_token_that_ray_writes_is_closed(tmp_path: Path) -> None:
    """By Ray's own function, which `ray.init` calls; a whole cluster would take ten seconds."""
    pytest.importorskip("ray")
    code = """
import ray
from ray._private.authentication.authentication_token_setup import generate_and_save_token
from rkcnn.reproduce.ray.cluster import join_cluster
ray.init, ray.shutdown = lambda **_: generate_and_save_token(), lambda: None
with join_cluster(None):
    pass
"""
    environment = {**os.environ, "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, umask=0o022)
    assert (tmp_path / ".ray" / "auth_token").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / ".ray").stat().st_mode & 0o777 == 0o700
