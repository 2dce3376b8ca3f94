"""Where files are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rkcnn.data.sources import Sources


def test_places_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKCNN_DATA", "/env")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert Sources(data_dir=Path("/given")).places() == [Path("/given"), Path("/env"), Path("/xdg/rkcnn")]
    monkeypatch.delenv("RKCNN_DATA")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert Sources().places() == [Path("/home/me/.cache/rkcnn")]
