"""What is computed of the runs of one row."""

from __future__ import annotations

from pathlib import Path

import pytest

from outcome import outcome
from report.records import put_records, row_of
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.run import Run
from rkcnn.report.row import Row


def test_errors_of_the_last_and_the_best_epoch(tmp_path: Path) -> None:
    put_records(tmp_path)
    one = row_of(tmp_path, "RKCNN-I-2@k=32")
    assert one.last
    assert one.best
    assert one.last.mean == pytest.approx(0.0035)
    assert one.best.mean == pytest.approx(0.0033)
    assert (one.last.n, one.last.min, one.seconds) == (5, 0.0033, 65.4)
    assert one.printed
    assert one.printed.printed == "0.29(0.316±0.033)"
    assert (one.label, one.family, one.params) == ("RKCNN-I-2 k=32", "RKCNN-I", 1234)
    assert [folder.name for folder in one.folders] == [f"seed-{seed}" for seed in range(5)]


def test_what_survives_of_a_row_is_not_all_finished(tmp_path: Path) -> None:
    put_records(tmp_path, {"ODENet-ab@k=32": (0.004, None), "ResNet@k=32": (0.004,)})
    assert [row_of(tmp_path, spec).all_finished for spec in ("ODENet-ab@k=32", "ResNet@k=32", "Identity@k=32")] == [
        False, True, False,
    ]  # fmt: skip


def test_how_many_were_side_by_side_is_told_where_all_records_say(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,)}, machine={"together": 3})
    put_records(tmp_path, {"Identity@k=32": (0.004,)}, machine={})
    assert [row_of(tmp_path, spec).side_by_side for spec in ("ResNet@k=32", "Identity@k=32", "DenseNet-2@k=32")] == [
        3, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "network", "evaluations", "uses"),
    [
        ("cifar10", "RKNN-rk4_38@k=120_120_120", 12, 4),
        ("cifar10", "ODENet-abm@k=120_120_120", 34.3, 11),  # as many as the data decided, on average
        ("cifar10", "RKNet-radau3@k=120_120_120", 54.3, 1),  # which freezes its norms while it solves
        ("cifar10", "ResNet@k=120_120_120", 3, 1),
        ("mnist", "RKNN-rk4_38@k=32", 4, 1),
        ("statistics", "ODENet-ab@k=120_120_120,statistics=each", 96, 1),
        ("norms", "RKNN-rk4_38@k=32,norm=bn", 4, 4),
    ],
)
def test_how_many_evaluations_share_a_norm(
    tmp_path: Path, table: str, network: str, evaluations: float, uses: int
) -> None:
    put_records(tmp_path, {network: (0.01,)}, table, "fast", evaluations=evaluations)
    assert row_of(tmp_path, network, table, "fast").evaluations_of_a_norm == uses


def test_a_step_that_this_process_does_not_know_shares_nothing() -> None:
    result = outcome(run=Run("mnist-mini", "MyStep@k=8", find_recipe("mini"), 0), evaluations=4)
    row = Row("MyStep@k=8", "MyStep", "mine", None, None, None, (result,), (), 0)
    assert row.evaluations_of_a_norm == 1


def test_the_training_error_is_the_mean_of_the_last_epochs(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.006)})
    assert row_of(tmp_path, "ResNet@k=32").training_error == pytest.approx(0.0025)
