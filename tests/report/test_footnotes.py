"""What a reader of a table has to know."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from footprints import put_memories
from measured_norms import put_measured
from report.records import put_records, report_of
from rkcnn.record.tables import TABLES
from rkcnn.report.footnotes import NORMS, note_sampling


def notes(folder: Path, table: str = "mnist", preset: str | None = None) -> str:
    return "\n".join(report_of(folder, table, preset).notes)


def test_the_error_from_the_draw_of_the_images(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.0029, 0.0031)})
    part = report_of(tmp_path)
    text = note_sampling(part.results, part.comparisons)
    assert "the error of one trained network, 0.30 % on average, has a standard error of ±0.055 points from" in text
    assert "the draw of the images (95 %: ±0.107). Means over seeds have less of it" in text
    assert text in part.notes


def test_the_error_of_a_difference_from_the_draw_of_the_images(tmp_path: Path) -> None:
    """Without predictions two networks of 0.4 % and 0.36 % are taken to err independently."""
    two = {"ResNet@k=32": (0.0040, 0.0040), "RKCNN-R-2@k=32": (0.0035, 0.0037)}
    folders = put_records(tmp_path, two)
    se = 100 * sqrt((0.004 * 0.996 + 0.0036 * 0.9964) / 10_000)
    assert f"between two of them it is ±{se:.3f} points if the two err independently, and less" in notes(tmp_path)
    predictions = np.zeros(10_000, np.int16)
    for folder in folders:
        predictions[:49] = "ResNet" in str(folder)
        np.save(folder / "predictions.npy", predictions)
    text = notes(tmp_path)
    assert "For a difference between two of them it is ±0.070 points: sqrt(d)/n for the d = 49 of n images" in text
    assert text.count("A small difference may reverse on another test set.") == 1
    put_records(tmp_path, {"DenseNet-2@k=32": (0.0040, 0.0040)})
    mixed = notes(tmp_path)
    assert "two of them it is ±0.070 points: sqrt(d)/n for the d = 49 of n images" in mixed
    assert f"Where predictions were not kept it is ±{se:.3f} points if the two err independently, and less" in mixed


def test_runs_of_one_row_that_count_otherwise_are_named(tmp_path: Path) -> None:
    put_records(tmp_path / "a", {"ResNet@k=32": (0.004,)}, params=52_234)
    assert "parameters, so they" not in notes(tmp_path)
    run = replace(TABLES["mnist"].runs("paper", "ResNet@k=32", 1)[0], seed=1)
    put_records(tmp_path / "b", {"ResNet@k=32": (0.004,)}, params=52_240, run=run)
    assert "pre-act ResNet: its runs have 52,234 and 52,240 parameters, so they are not of one net" in notes(tmp_path)


def test_notes_in_the_records_are_shown(tmp_path: Path) -> None:
    put_records(tmp_path, {"CliqueNet-2@k=32": (0.004, 0.005)}, notes=("made before its first weights changed",))
    assert notes(tmp_path).count("CliqueNet (T = 2): made before its first weights changed.") == 1


def test_quoted_numbers_came_from_another_recipe(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKNet-64": (0.0042,)}, "sota-mnist", params=208_266)
    text = notes(tmp_path, "sota-mnist")
    assert "* The paper quotes this number from Chen et al. 2018, Table 1; Norcliffe et al. 2020, where the" in text
    assert "RK-Net (Chen et al. 2018), params: quoted from Chen et al.; the public code gives 208,266." in text


def test_single_runs_and_gaps_of_the_paper_are_told_once(tmp_path: Path) -> None:
    text = notes(tmp_path, "sota-cifar10")
    assert text.count("one run: the table's note says a random result") == 1
    assert "ODE-Net (4th-order implicit) (N/A): the paper: the model does not converge." in notes(tmp_path, "cifar10")


def test_misprints_and_differences_of_costs(tmp_path: Path) -> None:
    put_records(tmp_path, {"DenseNet-2@k=32": (0.004,)}, params=56_266)
    put_records(tmp_path, {"ResNet@k=32": (0.004,)}, params=52_000)
    text = notes(tmp_path)
    assert "DenseNet (T = 2), params: 57.55 K is the CliqueNet cell" in text
    assert "pre-act ResNet, params: the paper has 52.23 K, the records 52,000." in text


def test_what_diverged_and_why(tmp_path: Path) -> None:
    put_records(tmp_path, {"ODENet-ab@k=32": (0.004, None, None)})
    assert "ODE-Net (4th-order explicit) diverged with seed 1, 2: the loss is nan at step 12." in notes(tmp_path)


def test_norms_are_confounded_on_mnist_alone(tmp_path: Path) -> None:
    assert NORMS in notes(tmp_path)
    assert all(NORMS not in notes(tmp_path, name) for name in ("norms", "cifar10", "scaling"))


def test_smoke_says_nothing_of_accuracy(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3,)}, preset="smoke")
    text = notes(tmp_path, preset="smoke")
    assert NORMS not in text
    assert "sample" not in text


def test_a_single_run_has_wilsons_interval(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.0040,), "Identity@k=32": (0.006, 0.007)})
    text = notes(tmp_path)
    assert "pre-act ResNet is a single run: 0.40 % of 10,000 images are wrong, with 0.29 to 0.54 % as Wilson's" in text
    assert text.count("is a single run") == 1


def test_why_there_is_no_figure_of_time(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,)})
    assert "training time" not in notes(tmp_path)
    put_records(tmp_path, {"Identity@k=32": (0.004,)}, machine={"gpu": "NVIDIA H200"})
    assert "There is no figure of error against training time: runs of this table were" in notes(tmp_path)


def test_the_last_epoch_is_compared_with_the_papers_best(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert "Δ last compares our last epoch with the paper's best one, and so is higher" in notes(tmp_path)
    assert "Δ" not in notes(tmp_path, "scaling")


@pytest.mark.parametrize("preset", ["fast", "smoke"])
def test_no_difference_is_explained_where_none_is_given(tmp_path: Path, preset: str) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)}, preset=preset)
    text = notes(tmp_path, preset=preset)
    assert "Δ" not in text
    assert "The paper's errors are for orientation" in text
    assert "Δ" not in notes(tmp_path, preset="paper"), "nothing was run by it"


def test_what_was_left_out_is_counted(tmp_path: Path) -> None:
    put_records(tmp_path)
    put_records(tmp_path, {"ResNet@k=32": (0.005, 0.006)}, preset="fast")
    found = report_of(tmp_path).notes
    assert "Results of these networks by other recipes are left out: 2 by fast-mnist." in found


def test_the_control_is_explained(tmp_path: Path) -> None:
    assert "Identity@k=32 is the network without any step: all its other layers are there." in notes(tmp_path)
    assert "without any step" not in notes(tmp_path, "sota-mnist")


def test_what_each_memory_is(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert "Memory" not in notes(tmp_path)
    put_memories(tmp_path, {"ResNet@k=32": 620})
    assert "(not measured yet)" in notes(tmp_path)
    put_memories(tmp_path, {"Identity@k=32": 612})
    text = notes(tmp_path)
    assert "Memory is in MiB, of a fresh process that infers one image on NVIDIA H200. driver: what the driver" in text
    assert "the network without any step (Identity@k=32, 612 MiB), which includes libraries" in text
    assert "The paper's memory includes the CUDA context of its machine" in text
    assert "only differences between rows can be compared." in text
    assert "The paper's memory" not in notes(tmp_path, "norms"), "it has no such table"


def test_evaluations_that_share_statistics_are_told_with_both_errors(tmp_path: Path) -> None:
    two = {"RKNN-rk4_38@k=120_120_120": (0.16, 0.20), "RKNet-rk4_38@k=120_120_120": (0.17,)}
    put_records(tmp_path, two, "cifar10", "fast", evaluations=12)
    assert (
        "Batch norm in f, the small network that is evaluated several times in a period, has one set of running "
        "statistics for all evaluations in RKNN (4th-order ERK) (4 evaluations; training error 9.00 %, test error "
        "18.00 %) and RK-Net (4th-order ERK) (4 evaluations; training error 8.50 %, test error 17.00 %); "
        "docs/batch-norm.md measures what that can cost."
    ) in notes(tmp_path, "cifar10", "fast")


def test_what_was_measured_with_a_set_each_is_told_too(tmp_path: Path) -> None:
    for folder in put_records(tmp_path, {"RKNN-rk4_38@k=120_120_120": (0.16, 0.20)}, "cifar10", "fast", evaluations=12):
        put_measured(folder, each=61 if folder.name == "seed-0" else 65)
    text = notes(tmp_path, "cifar10", "fast")
    assert "test error 18.00 %, and 6.30 % with the same weights and a set each); docs/batch-norm.md" in text
