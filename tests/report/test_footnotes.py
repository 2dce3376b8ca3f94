"""How a table is to be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from footprints import put_memories
from report.records import put_records
from rkcnn.record.tables import TABLES
from rkcnn.report.footnotes import NORMS, footnotes, note_sampling
from rkcnn.report.view import view


def notes(folder: Path, table: str = "mnist", preset: str | None = None) -> str:
    return "\n".join(footnotes(view(TABLES[table], folder, preset)))


def test_the_test_sets_own_error(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.0029, 0.0031)})
    text = note_sampling(view(TABLES["mnist"], tmp_path))
    assert "an error of 0.30 % of them is known to ±0.055 points (one standard error; 95 %: ±0.107)" in text
    assert text in notes(tmp_path)


def test_quoted_numbers_came_from_another_recipe(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKNet-64": (0.0042,)}, "sota-mnist", params=208_266)
    text = notes(tmp_path, "sota-mnist")
    assert "* quoted by the paper from Chen et al. 2018, Table 1; Norcliffe et al. 2020: trained by their own" in text
    assert "RK-Net (Chen et al. 2018), params: quoted from Chen et al.; the public code gives 208,266." in text


def test_single_runs_and_gaps_of_the_paper_are_told_once(tmp_path: Path) -> None:
    text = notes(tmp_path, "sota-cifar10")
    assert text.count("one run: the table's note says a random result") == 1
    assert "ODE-Net (4th-order implicit) (N/A): the paper: the model does not converge." in notes(tmp_path, "cifar10")


def test_slips_and_differences_of_costs(tmp_path: Path) -> None:
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
    assert "pre-act ResNet is one run: 0.40 % of 10,000 images, 0.29 to 0.54 % by Wilson's 95 % interval" in text
    assert text.count("is one run") == 1


def test_why_there_is_no_figure_of_time(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,)})
    assert "training time" not in notes(tmp_path)
    put_records(tmp_path, {"Identity@k=32": (0.004,)}, machine={"gpu": "NVIDIA H200"})
    assert "There is no figure of error against training time: runs of this table were" in notes(tmp_path)


def test_the_last_epoch_is_set_against_their_best(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert "Δ last sets our last epoch against their best one, and so comes out higher" in notes(tmp_path)
    assert "Δ" not in notes(tmp_path, "scaling")


@pytest.mark.parametrize("preset", ["fast", "smoke"])
def test_no_difference_is_explained_where_none_is_given(tmp_path: Path, preset: str) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)}, preset=preset)
    text = notes(tmp_path, preset=preset)
    assert "Δ" not in text
    assert "theirs is for orientation alone" in text
    assert "Δ" not in notes(tmp_path, preset="paper"), "nothing was run by it"


def test_what_was_left_out_is_counted(tmp_path: Path) -> None:
    put_records(tmp_path)
    put_records(tmp_path, {"ResNet@k=32": (0.005, 0.006)}, preset="fast")
    notes = [*footnotes(view(TABLES["mnist"], tmp_path))]
    assert "Results of these networks by other recipes are left out: 2 by fast-mnist." in notes


def test_the_control_is_explained(tmp_path: Path) -> None:
    assert "Identity@k=32 is the frame with nothing in it: every layer but the steps." in notes(tmp_path)
    assert "nothing in it" not in notes(tmp_path, "sota-mnist")


def test_what_each_memory_is(tmp_path: Path) -> None:
    put_records(tmp_path)
    assert "Memory" not in notes(tmp_path)
    put_memories(tmp_path, {"ResNet@k=32": 620})
    assert "(not measured yet)" in notes(tmp_path)
    put_memories(tmp_path, {"Identity@k=32": 612})
    text = notes(tmp_path)
    assert "Memory in MiB, of a fresh process that infers one image on NVIDIA H200. driver: what the driver" in text
    assert "the frame without any step (Identity@k=32, 612 MiB), which includes libraries" in text
    assert "The paper's memory includes the CUDA context of its own machine" in text
    assert "only differences between rows can be compared." in text
    assert "The paper's memory" not in notes(tmp_path, "norms"), "it has no such table"
