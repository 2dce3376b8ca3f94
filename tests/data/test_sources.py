"""Where files are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rkcnn.data.sources import Sources
from rkcnn.error import InputError


def test_places_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKCNN_DATA", "/env")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert Sources(data_dir=Path("/given")).places() == [Path("/given"), Path("/env"), Path("/xdg/rkcnn")]
    monkeypatch.delenv("RKCNN_DATA")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert Sources().places() == [Path("/home/me/.cache/rkcnn")]


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("RKCNN_DATA", "~/x")
    monkeypatch.setenv("XDG_CACHE_HOME", "~/cache")
    assert Sources(data_dir=Path("~/y")).places() == [
        *(Path("/home/me/y"), Path("/home/me/x"), Path("/home/me/cache/rkcnn"))
    ]


@pytest.mark.parametrize("timeout", [-1, 0, float("nan"), float("inf"), 1e20])
def test_refuses_a_timeout_that_no_socket_takes(timeout: float) -> None:
    with pytest.raises(InputError, match="must be over 0 and at most 86400 seconds"):
        Sources(timeout=timeout)


@pytest.mark.parametrize(
    "mirror",
    [
        *("foo", "", "http://[::1", "file:///etc/", "ftp://host/", "http://", "http://h\u00f6st/", "http://a b/"),
        *("http://host:x/", "http://host/\n"),
    ],
)
def test_refuses_a_mirror_that_is_no_address(mirror: str) -> None:
    with pytest.raises(InputError, match="is no address of a folder; give one"):
        Sources(mirror=mirror)
