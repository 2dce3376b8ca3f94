"""Comparisons from Python, of runs that were trained here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rkcnn.error import InputError
from rkcnn.use.compare import compare
from rkcnn.use.train import TrainingResult, train
from use.conftest import Arrays


@pytest.fixture(scope="module")
def other(arrays: Arrays, tmp_path_factory: pytest.TempPathFactory) -> TrainingResult:
    """Another network on the same arrays by the recipe of `trained`."""
    out = tmp_path_factory.mktemp("runs")
    return train("RKCNN-R-2@k=4", arrays, epochs=2, batch=50, out=out, progress=False)


def test_results_and_folders_are_compared(trained: TrainingResult, other: TrainingResult, tmp_path: Path) -> None:
    found = compare([trained, str(other.folder)])
    (pair,) = found.comparisons
    assert (pair.row.network, pair.reference.network) == ("RKCNN-R-2@k=4", "ResNet@k=4")
    assert pair.difference.value == pytest.approx((other.error or 0) - (trained.error or 0))
    assert pair.mcnemar, "the true classes of arrays lie in the run's folder"
    assert found.table.results.images == 50
    assert str(found).startswith("comparison: 2 networks on arrays-")
    assert repr(found).startswith("<RunComparison: comparison: 2 networks on arrays-")
    assert found.warnings == ()
    written = found.write(tmp_path / "report")
    assert {"comparison.md", "comparison.csv", "report.html"} <= {path.name for path in written}
    swapped = compare([trained, other], reference="RKCNN-R-2@k=4").comparisons[0]
    assert swapped.difference.value == pytest.approx(-pair.difference.value)


def test_one_folder_that_holds_runs(trained: TrainingResult) -> None:
    assert compare(trained.folder.parents[3]).table.results.runs == 1


def test_no_runs_are_one_sentence() -> None:
    with pytest.raises(InputError, match="no runs given; name the folders of finished runs"):
        compare([])


def test_it_needs_no_torch() -> None:
    code = "import rkcnn.use.compare, rkcnn.use.log, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
