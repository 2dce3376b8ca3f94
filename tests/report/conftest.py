"""Reports in tests are the same on every machine."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def without_data_sets(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hide the data sets of whoever runs the tests: where test labels are known, a report says more."""
    folder = tmp_path_factory.mktemp("no-data")
    monkeypatch.setenv("RKCNN_DATA", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder
