"""Rows against their reference: which, by how much, and corrected for their number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from report.records import ERRORS, put_records
from rkcnn.record.tables import TABLES
from rkcnn.report import mistakes
from rkcnn.report.compare import compare, reference_of
from rkcnn.report.view import view


def test_the_reference_is_the_papers_best() -> None:
    found = {name: {reference_of(table, spec) for spec in table.specs} for name, table in TABLES.items()}
    assert found["mnist"] == found["sota-mnist"] == {"RKCNN-R-2@k=32"}
    assert found["cifar10"] == found["ablation"] == {"RKCNN-I-2_2_2@k=120"}
    assert found["sota-cifar10"] == {"RKCNN-I-5_5_6@k=150_120_120"}
    assert found["sota-cifar100"] == {"RKCNN-R-3_4_4@k=180"}
    assert found["scaling"] == {"RKCNN-I-2_2_2@k=80"}
    assert all(found[name] <= set(table.specs) for name, table in TABLES.items())


def test_norms_are_compared_with_their_like() -> None:
    for spec in TABLES["norms"].specs:
        reference = reference_of(TABLES["norms"], spec)
        if spec.startswith("RKCNN-"):
            assert reference.partition(",")[2] == spec.partition(",")[2]
    assert reference_of(TABLES["norms"], "ResNet@k=32,norm=bn") == "RKCNN-R-2@k=32,norm=bn"
    assert reference_of(TABLES["norms"], "Identity@k=32") == "RKCNN-R-2@k=32,norm=gn"


def test_differences_are_welchs_and_corrected_over_the_table(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "DenseNet-2@k=32": (0.0035,), "ODENet-ab@k=32": (0.004, None)})
    contrasts = compare(view(TABLES["mnist"], tmp_path))
    names = [contrast.row.spec for contrast in contrasts]
    assert names == ["ResNet-bottleneck@k=32", "ResNet@k=32", "RKCNN-E-2@k=32", "RKCNN-I-2@k=32"]  # two runs or more
    reference = ERRORS["RKCNN-R-2@k=32"]
    ps = []
    for contrast in contrasts:
        errors = ERRORS[contrast.row.spec]
        oracle = stats.ttest_ind(errors, reference, equal_var=False)
        low, high = oracle.confidence_interval(0.95)
        assert contrast.difference.interval == pytest.approx((low, high))
        ps.append(oracle.pvalue)
    order = np.argsort(ps)
    counts = np.arange(len(ps), 0, -1) + 1  # and the row that lost a run
    holm = np.minimum(1, np.maximum.accumulate(np.asarray(ps)[order] * counts))
    assert [contrasts[i].p for i in order] == pytest.approx(list(holm))
    assert [contrast.separable for contrast in contrasts] == [True, True, False, False]


def test_without_the_reference_nothing_is_compared(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005), "RKCNN-R-2@k=32": (0.004,)})
    assert compare(view(TABLES["mnist"], tmp_path)) == []


def test_a_row_with_diverged_runs_is_not_compared(tmp_path: Path) -> None:
    lucky = {"CliqueNet-2@k=32": (0.0091, 0.0092, None, None, None)}
    put_records(tmp_path, {**ERRORS, **lucky})
    contrasts = compare(view(TABLES["mnist"], tmp_path))
    assert "CliqueNet-2@k=32" not in [contrast.row.spec for contrast in contrasts]
    clearest = min(contrasts, key=lambda contrast: contrast.p or 1)
    assert clearest.among == len(contrasts) + 1, "it stays in the count, or it would make the others clearer"
    assert clearest.p == pytest.approx(clearest.among * (clearest.difference.p or 0))
    put_records(tmp_path / "b", {"ResNet@k=32": (0.004, 0.005), "RKCNN-R-2@k=32": (0.003, 0.0031, None)})
    assert compare(view(TABLES["mnist"], tmp_path / "b")) == [], "nor is anything with such a reference"


def test_smoke_compares_nothing_with_any_number_of_seeds(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3, 0.31, 0.32), "RKCNN-R-2@k=32": (0.1, 0.11, 0.12)}, preset="smoke")
    assert compare(view(TABLES["mnist"], tmp_path)) == []


def test_more_seeds_than_can_be_dealt_out_have_no_permutation_test(tmp_path: Path) -> None:
    errors = tuple(0.003 + 0.0001 * i for i in range(12))
    put_records(tmp_path, {"ResNet@k=32": errors, "RKCNN-R-2@k=32": errors})
    (contrast,) = compare(view(TABLES["mnist"], tmp_path))
    assert contrast.permutation is None
    assert contrast.p == pytest.approx(1)


def test_runs_without_any_spread_have_no_interval(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,) * 2, "RKCNN-R-2@k=32": (0.004,) * 2})
    (contrast,) = compare(view(TABLES["mnist"], tmp_path))
    assert (contrast.difference.interval, contrast.p, contrast.separable) == (None, None, False)


def test_the_same_images_are_judged_by_mcnemar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.zeros(10_000, np.int64)
    monkeypatch.setattr(mistakes, "read_labels", lambda data: labels)
    wrong = {"ResNet@k=32": range(40), "RKCNN-R-2@k=32": range(10, 45)}
    for at in put_records(tmp_path, {"ResNet@k=32": (0.0040, 0.0042), "RKCNN-R-2@k=32": (0.0035, 0.0034)}):
        predictions = np.zeros(10_000, np.int16)
        predictions[list(next(images for spec, images in wrong.items() if spec in str(at)))] = 3
        np.save(at / "predictions.npy", predictions)
    (contrast,) = compare(view(TABLES["mnist"], tmp_path))
    assert contrast.mcnemar
    assert contrast.mcnemar[:2] == (10, 5)
    assert contrast.mcnemar.p == pytest.approx(stats.binomtest(5, 15).pvalue)
