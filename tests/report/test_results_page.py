"""docs/results.md, from records."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import fmean, stdev

import pytest
from scipy import stats

from report.records import ERRORS, put_records
from rkcnn.report.published import NO_RUNS, report_published
from rkcnn.report.results import read_records
from rkcnn.report.results_page import WRITTEN, write_results_page
from rkcnn.report.statistics import Sample, welch_from_samples


def page(folder: Path) -> str:
    records, _ = read_records(folder)
    return write_results_page(report_published(records), records)


def test_a_table_what_it_shows_and_what_it_cant(tmp_path: Path) -> None:
    put_records(tmp_path, params=52_234, machine={"gpu": "NVIDIA H200"})
    text = page(tmp_path)
    assert text.startswith(
        f"{WRITTEN}\n\n# Results\n\nTest errors in percent. Last epoch: mean ± standard deviation over seeds; nothing "
        "in it was chosen on the test set."
    )
    assert " 24 runs on NVIDIA H200: MNIST by the paper's recipe (160 epochs in fp32), 4 to 5 seeds, 5 of the" in text
    assert "24 runs of 5 of the paper's 18 networks, by the paper's recipe (160 epochs in fp32)." in text
    assert "| pre-act ResNet | 52,234 | 0.33 (0.372 ± 0.031) |" in text
    assert "our means are +0.004 to +0.028 points from the paper's over 5 networks. By Welch's test" in text
    assert "with Holm's correction, none of them separates. The 95 % intervals are within -0." in text
    assert "without any step" not in text, "Identity was not run, so there is nothing to explain"
    assert (
        "  - err more: pre-act ResNet (bottleneck) (+0.182, +0.143 to +0.220), "
        "pre-act ResNet (+0.050, +0.015 to +0.084)\n"
        "  - not separable: RKCNN-E-2 k=32 (+0.036, -0.001 to +0.072), RKCNN-I-2 k=32 (-0.002, -0.036 to +0.031)\n"
    ) in text
    assert "![Differences of error from RKCNN-R-2 k=32, with their intervals](results-mnist-paper.svg)" in text
    assert "Not run yet: RKNN (4th-order ERK)" in text
    assert "| RKCNN-E errs more than -I and -R, everywhere (RKCNN-I and -R have 1.4 times the parameters of" in text
    assert "of colour images) | undecided (2 of 8 comparisons: 1 as claimed, 1" in text
    assert "1 undecided) | undecided (6 as claimed, 2 undecided) |\n" in text
    assert "\n| 24 | 0 | unknown | 0123456789abcdef | unknown | unknown | NVIDIA H200 | eager |\n" in text
    assert page(tmp_path) == text


def test_the_control_is_explained_where_it_was_run(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "Identity@k=32": (0.006,)})
    assert "Identity@k=32 is the network without any step" in page(tmp_path)


def test_claims_come_first(tmp_path: Path) -> None:
    put_records(tmp_path)
    heads = [line for line in page(tmp_path).splitlines() if line.startswith("#")]
    assert heads == [
        "# Results",
        "## The paper's claims",
        "## MNIST by the paper's recipe",
        "### What the runs show",
        "### What they can't show",
        "## Code and machines",
    ]


def test_what_the_records_note_is_shown_once_for_all_rows_that_have_it(tmp_path: Path) -> None:
    about_run = "Trained before its first weights changed."
    about_record = "Found in a check and corrected by hand: a commit."
    put_records(tmp_path, {"CliqueNet-2@k=32": (0.004,)}, notes=(about_run, about_record))
    put_records(tmp_path, {"ResNet@k=32": (0.004,)}, notes=(about_record,))
    noted = f"CliqueNet (T = 2): {about_run}"
    assert f"\n- {noted}\n" in page(tmp_path)
    assert f"\n- pre-act ResNet, CliqueNet (T = 2): {about_record}\n" in page(tmp_path)


def test_shared_running_statistics_are_noted(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKNN-rk4_38@k=120_120_120": (0.16,), "ResNet@k=120_120_120": (0.06,)}, "cifar10", "fast")
    text = page(tmp_path)
    assert "Batch norm in f" not in text, "the records don't say how often f was evaluated"
    shutil.rmtree(tmp_path)
    two = {"RKNN-rk4_38@k=120_120_120": (0.16,), "ResNet@k=120_120_120": (0.06,)}
    put_records(tmp_path, two, "cifar10", "fast", evaluations=12)
    assert "\n- Batch norm in f, the small network that is evaluated several times" in page(tmp_path)


def test_no_runs_are_said_in_a_sentence(tmp_path: Path) -> None:
    assert page(tmp_path) == f"{WRITTEN}\n\n# Results\n\n{NO_RUNS}\n"
    put_records(tmp_path, {"ResNet@k=32": (0.01,)}, preset="fast")
    others = "Also in `results/`: fast-mnist in fp32, 1 of 95 runs, not the paper's recipe (`rkcnn report mnist"
    assert f"{NO_RUNS}\n\n{others}" in page(tmp_path)


def test_runs_without_anything_to_compare(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,), "DenseNet-2@k=32": (0.004,)})
    assert "- No comparison: RKCNN-R-2 k=32 and another row need two finished runs each" in page(tmp_path)


def test_other_tables_are_named_if_they_add_runs(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=120": (0.06,)}, "cifar10", "fast")
    assert page(tmp_path).endswith(
        "Also in `results/`: fast-cifar in bf16, 1 of 51 runs, not the paper's recipe "
        "(`rkcnn report cifar10 --preset fast --from results`).\n"
    )
    put_records(tmp_path)
    assert "sota-mnist" not in page(tmp_path)


def test_what_differs_from_the_paper_is_named_with_its_interval(tmp_path: Path) -> None:
    """The oracle is scipy's, from the same three numbers of each side."""
    errors = (0.0062, 0.0064, 0.0063, 0.0061, 0.0065)
    put_records(tmp_path, {"ResNet@k=32": errors, "RKCNN-R-2@k=32": (0.0033, 0.0035)})
    text = page(tmp_path)
    assert "1 of them separates: pre-act ResNet (+0.238, +0." in text
    ours = [100 * error - 0.02 for error in errors]
    oracle = stats.ttest_ind_from_stats(fmean(ours), stdev(ours), 5, 0.372, 0.031, 5, equal_var=False)
    sample = welch_from_samples(Sample.of(ours), Sample(0.372, 0.031, 5, 0.33))
    assert sample.p == pytest.approx(oracle.pvalue)
    assert sample.interval
    assert f"(+0.238, {sample.interval[0]:+.3f} to {sample.interval[1]:+.3f})" in text


def test_runs_without_any_spread_are_apart(tmp_path: Path) -> None:
    put_records(
        tmp_path, {"ResNet@k=32": (0.006,) * 3, "RKCNN-R-2@k=32": (0.003,) * 3, "RKCNN-I-2@k=32": (0.003, 0.0031)}
    )
    text = page(tmp_path)
    assert "Holm's correction for 1 comparison (" in text
    assert "  - without any spread, not tested: pre-act ResNet (+0.300)\n" in text


def test_what_is_left_of_diverged_runs_is_not_set_against_the_paper(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.0062, 0.0064, None), "RKCNN-R-2@k=32": (0.0033, 0.0035)})
    text = page(tmp_path)
    assert "over 1 network." in text
    assert "1 of 3 runs of pre-act ResNet diverged. The surviving runs are a biased sample, so this row is not" in text


def test_each_data_set_has_its_section_and_each_recipe_its_verdicts(tmp_path: Path) -> None:
    put_records(tmp_path)
    colour = {"ResNet@k=120_120_120": (0.07, 0.071), "RKCNN-I-2_2_2@k=120": (0.058, 0.0581, None)}
    put_records(tmp_path, colour, "cifar10", "fast")
    text = page(tmp_path)
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## The paper's claims",
        "## MNIST by the paper's recipe",
        "## CIFAR-10 by `fast-cifar`",
        "## Code and machines",
    ]
    claims = "| claim | our runs by the paper's recipe | our runs by the fast recipes | the paper's own numbers |"
    assert claims in text
    assert "by `fast-cifar` (40 epochs in bf16; the paper has 300). The paper's errors are for orientation" in text
    assert "| FAST RKCNN-I-2_2_2 k=120 |" in text
    assert "1 of 3 runs of RKCNN-I-2_2_2 k=120 diverged" in text
    assert "group norm" not in text.partition("## CIFAR-10")[2], "which is said of MNIST alone"
