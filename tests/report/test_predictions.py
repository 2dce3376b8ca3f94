"""Which images a run got wrong, where that can be told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from report.records import put_records, results_of
from rkcnn.data.sets import SETS
from rkcnn.report import predictions
from rkcnn.report.predictions import find_mistakes, read_labels, read_predictions
from rkcnn.report.results import Row

MNIST = SETS["mnist"]


@pytest.fixture
def row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Row:
    """ResNet with two seeds, the first with 40 of 10,000 wrong."""
    labels = np.arange(10_000) % 10
    monkeypatch.setattr(predictions, "read_labels", lambda data: labels)
    first, _ = put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)})
    said = labels.astype(np.int16)
    said[:40] = 9 - said[:40]
    np.save(first / "predictions.npy", said)
    return next(row for row in results_of(tmp_path).rows if row.results)


def test_seed_0_image_by_image(row: Row) -> None:
    wrong = find_mistakes(row, MNIST)
    assert wrong is not None
    assert list(np.flatnonzero(wrong)) == list(range(40))


def test_predictions_need_no_labels(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "read_labels", lambda data: None)
    said = read_predictions(row)
    assert said is not None
    assert (said[:3].tolist(), len(said)) == ([9, 8, 7], 10_000)


def test_predictions_that_are_not_the_results_are_none(row: Row) -> None:
    path = row.folders[0] / "predictions.npy"
    np.save(path, np.zeros(10_000, np.int16))  # 90 % wrong, the result says 0.4 %
    assert find_mistakes(row, MNIST) is None
    np.save(path, np.zeros(9_999, np.int16))
    assert find_mistakes(row, MNIST) is None
    path.write_bytes(b"no array")
    assert find_mistakes(row, MNIST) is None
    path.unlink()
    assert find_mistakes(row, MNIST) is None


def test_no_labels_no_mistakes(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "read_labels", lambda data: None)
    assert find_mistakes(row, MNIST) is None


def test_labels_are_read_from_a_decoded_copy_and_never_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKCNN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert read_labels(MNIST) is None
    monkeypatch.setattr(
        predictions, "read_test_labels", lambda data, folders: np.arange(10) if folders[0] == tmp_path else None
    )
    found = read_labels(MNIST)
    assert found is not None
    assert list(found) == list(range(10))


def test_the_report_loads_nothing_that_fetches_or_decodes() -> None:
    code = "import rkcnn.report.report, sys; print([name for name in sys.modules if name.startswith('rkcnn.data')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "rkcnn.data.cache" in loaded
    assert not [
        name for name in ("fetch", "download", "files", "packaging", "read.idx", "images") if f"data.{name}" in loaded
    ]
