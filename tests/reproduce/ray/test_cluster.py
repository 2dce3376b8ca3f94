"""Clusters that can't be joined, each in one sentence; test_on_ray.py joins real ones."""

from __future__ import annotations

import sys

import pytest

from rkcnn.error import InputError
from rkcnn.reproduce.ray.cluster import join_cluster


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
