"""The README's results, from records."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import fmean, stdev

import pytest
from scipy import stats

from report.records import put_records
from rkcnn.report.results_section import draw_results, write_results
from rkcnn.report.statistics import Sample, welch_of
from rkcnn.report.view import read_records


def write(folder: Path) -> str:
    return write_results(read_records(folder)[0])


NONE = "No run of the paper's MNIST table by its own recipe has been published yet."


def test_a_table_what_it_shows_and_what_it_cant(tmp_path: Path) -> None:
    put_records(tmp_path, params=52_234, machine={"gpu": "NVIDIA H200"})
    text = write(tmp_path)
    assert text.startswith(
        "24 runs of 5 of the 19 rows of the MNIST table by the paper's recipe (160 epochs), on NVIDIA H200."
    )
    assert "| pre-act ResNet | 52,234 | 0.33 (0.372 ± 0.031) |" in text
    assert "our means lie +0.004 to +0.028 points from the paper's over 5 networks; by Welch's test" in text
    assert "with Holm's correction, none of them separates. The 95 % intervals lie within -0." in text
    assert "is the frame with nothing in it" not in text, "it was not run, so there is nothing to explain"
    put_records(tmp_path / "more", {"Identity@k=32": (0.006,)}, machine={"gpu": "NVIDIA H200"})
    assert "Identity@k=32 is the frame with nothing in it" in write(tmp_path)
    shutil.rmtree(tmp_path / "more")
    assert (
        "  - err more: pre-act ResNet (bottleneck) (+0.182, +0.143 to +0.220), "
        "pre-act ResNet (+0.050, +0.015 to +0.084)\n"
        "  - not separable: RKCNN-E-2 k=32 (+0.036, -0.001 to +0.072), RKCNN-I-2 k=32 (-0.002, -0.036 to +0.031)\n"
    ) in text
    assert "![Differences of error from RKCNN-R-2 k=32, with their intervals](docs/results.svg)" in text
    assert "Not run yet: RKNN (4th-order ERK)" in text
    assert "| RKCNN-E errs more than -I and -R, everywhere | not separable (2 of 8 comparisons: 1 as claimed, 1" in text
    assert "1 undecided) | not separable (6 as claimed, 2 undecided) |\n" in text
    assert write(tmp_path) == text


def test_no_runs_are_said_in_a_sentence(tmp_path: Path) -> None:
    assert write(tmp_path) == NONE
    put_records(tmp_path, {"ResNet@k=32": (0.01,)}, preset="fast")
    others = "Also in `results/`: fast-mnist, 1 of 95 runs, not the paper's recipe (`rkcnn report mnist --recipe fast"
    assert write(tmp_path).startswith(f"{NONE}\n\n{others}")
    assert draw_results(read_records(tmp_path)[0]) is None


def test_other_tables_are_named_if_they_add_runs(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=120": (0.06,)}, "cifar10", "fast")
    assert write(tmp_path).endswith(
        "Also in `results/`: fast-cifar, 1 of 51 runs, not the paper's recipe "
        "(`rkcnn report cifar10 --recipe fast --from results`)."
    )
    put_records(tmp_path)
    assert "sota-mnist" not in write(tmp_path)


def test_what_differs_from_the_paper_is_named_with_its_interval(tmp_path: Path) -> None:
    """The oracle is scipy's, from the same three numbers of each side."""
    errors = (0.0062, 0.0064, 0.0063, 0.0061, 0.0065)
    put_records(tmp_path, {"ResNet@k=32": errors, "RKCNN-R-2@k=32": (0.0033, 0.0035)})
    text = write(tmp_path)
    assert "1 of them separates: pre-act ResNet (+0.238, +0." in text
    ours = [100 * error - 0.02 for error in errors]
    oracle = stats.ttest_ind_from_stats(fmean(ours), stdev(ours), 5, 0.372, 0.031, 5, equal_var=False)
    sample = welch_of(Sample.of(ours), Sample(0.372, 0.031, 5, 0.33))
    assert sample.p == pytest.approx(oracle.pvalue)
    assert sample.interval
    assert f"(+0.238, {sample.interval[0]:+.3f} to {sample.interval[1]:+.3f})" in text


def test_runs_without_any_spread_are_apart(tmp_path: Path) -> None:
    put_records(
        tmp_path, {"ResNet@k=32": (0.006,) * 3, "RKCNN-R-2@k=32": (0.003,) * 3, "RKCNN-I-2@k=32": (0.003, 0.0031)}
    )
    text = write(tmp_path)
    assert "Holm's correction for 1 comparison (" in text
    assert "  - without any spread, not tested: pre-act ResNet (+0.300)\n" in text


def test_what_is_left_of_diverged_runs_is_not_set_against_the_paper(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.0062, 0.0064, None), "RKCNN-R-2@k=32": (0.0033, 0.0035)})
    text = write(tmp_path)
    assert "over 1 network;" in text
    assert "1 of 3 runs of pre-act ResNet diverged: what is left is chosen, so it is not compared." in text
