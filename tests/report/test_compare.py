"""Rows against their reference: which, by how much, and corrected for their number."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from report.records import ERRORS, put_records, report_of, results_of
from rkcnn.data.sets import SETS
from rkcnn.report.compare import find_mistakes, read_labels, read_predictions
from rkcnn.report.row import Row


def test_differences_are_welchs_and_corrected_over_the_table(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "DenseNet-2@k=32": (0.0035,), "ODENet-ab@k=32": (0.004, None)})
    comparisons = report_of(tmp_path).comparisons
    names = [comparison.row.network for comparison in comparisons]
    assert names == ["ResNet-bottleneck@k=32", "ResNet@k=32", "RKCNN-E-2@k=32", "RKCNN-I-2@k=32"]  # two runs or more
    reference = ERRORS["RKCNN-R-2@k=32"]
    ps = []
    for comparison in comparisons:
        errors = ERRORS[comparison.row.network]
        oracle = stats.ttest_ind(errors, reference, equal_var=False)
        low, high = oracle.confidence_interval(0.95)
        assert comparison.difference.interval == pytest.approx((low, high))
        ps.append(oracle.pvalue)
    order = np.argsort(ps)
    counts = np.arange(len(ps), 0, -1) + 1  # and the row that lost a run
    correct_by_holm = np.minimum(1, np.maximum.accumulate(np.asarray(ps)[order] * counts))
    assert [comparisons[i].p for i in order] == pytest.approx(list(correct_by_holm))
    assert [comparison.separable for comparison in comparisons] == [True, True, False, False]


def test_without_the_reference_nothing_is_compared(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005), "RKCNN-R-2@k=32": (0.004,)})
    assert report_of(tmp_path).comparisons == ()


def test_a_row_with_diverged_runs_is_not_compared(tmp_path: Path) -> None:
    lucky = {"CliqueNet-2@k=32": (0.0091, 0.0092, None, None, None)}
    put_records(tmp_path, {**ERRORS, **lucky})
    comparisons = report_of(tmp_path).comparisons
    assert "CliqueNet-2@k=32" not in [comparison.row.network for comparison in comparisons]
    clearest = min(comparisons, key=lambda comparison: comparison.p or 1)
    assert clearest.among == len(comparisons) + 1, "it stays in the count, or it would make the others clearer"
    assert clearest.p == pytest.approx(clearest.among * (clearest.difference.p or 0))
    put_records(tmp_path / "b", {"ResNet@k=32": (0.004, 0.005), "RKCNN-R-2@k=32": (0.003, 0.0031, None)})
    assert report_of(tmp_path / "b").comparisons == (), "nor is anything with such a reference"


def test_smoke_compares_nothing_with_any_number_of_seeds(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3, 0.31, 0.32), "RKCNN-R-2@k=32": (0.1, 0.11, 0.12)}, preset="smoke")
    assert report_of(tmp_path).comparisons == ()


def test_more_seeds_than_can_be_dealt_out_have_no_permutation_test(tmp_path: Path) -> None:
    errors = tuple(0.003 + 0.0001 * i for i in range(12))
    put_records(tmp_path, {"ResNet@k=32": errors, "RKCNN-R-2@k=32": errors})
    (comparison,) = report_of(tmp_path).comparisons
    assert comparison.permutation is None
    assert comparison.p == pytest.approx(1)


def test_runs_without_any_spread_have_no_interval(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,) * 2, "RKCNN-R-2@k=32": (0.004,) * 2})
    (comparison,) = report_of(tmp_path).comparisons
    assert (comparison.difference.interval, comparison.p, comparison.separable) == (None, None, False)


def test_the_same_images_are_judged_by_mcnemar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.zeros(10_000, np.int64)
    monkeypatch.setattr("rkcnn.report.compare.read_labels", lambda data: labels)
    wrong = {"ResNet@k=32": range(40), "RKCNN-R-2@k=32": range(10, 45)}
    for at in put_records(tmp_path, {"ResNet@k=32": (0.0040, 0.0042), "RKCNN-R-2@k=32": (0.0035, 0.0034)}):
        said = np.zeros(10_000, np.int16)
        said[list(next(images for spec, images in wrong.items() if spec in str(at)))] = 3
        np.save(at / "predictions.npy", said)
    (comparison,) = report_of(tmp_path).comparisons
    assert comparison.mcnemar
    assert comparison.mcnemar[:2] == (10, 5)
    assert comparison.mcnemar.p == pytest.approx(stats.binomtest(5, 15).pvalue)


MNIST = SETS["mnist"]


@pytest.fixture
def row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Row:
    """ResNet with two seeds, the first with 40 of 10,000 wrong."""
    labels = np.arange(10_000) % 10
    monkeypatch.setattr("rkcnn.report.compare.read_labels", lambda data: labels)
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
    monkeypatch.setattr("rkcnn.report.compare.read_labels", lambda data: None)
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
    monkeypatch.setattr("rkcnn.report.compare.read_labels", lambda data: None)
    assert find_mistakes(row, MNIST) is None


def test_labels_are_read_from_a_decoded_copy_and_never_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKCNN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert read_labels(MNIST) is None
    monkeypatch.setattr(
        "rkcnn.report.compare.read_test_labels", lambda data, folders: np.arange(10) if folders[0] == tmp_path else None
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
