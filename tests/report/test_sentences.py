"""What a table's runs and comparisons show, in sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from report.records import ERRORS, put_records, report_of, results_of
from rkcnn.evaluation.binomial import McNemar
from rkcnn.report.footnotes import NORMS
from rkcnn.report.sentences import (
    Statement,
    describe_comparison,
    find_agreement,
    introduce_comparisons,
    preset_warning,
    say_paper_counts,
    signed,
    title,
)


def say(folder: Path, table: str = "mnist") -> tuple[str, tuple[Statement, ...], tuple[str, ...]]:
    part = report_of(folder, table)
    return part.coverage, part.findings, part.limits


def test_what_separates_and_what_doesnt(tmp_path: Path) -> None:
    put_records(tmp_path)
    _, resnet, _, implicit = report_of(tmp_path).comparisons
    assert describe_comparison(resnet, 3) == (
        "pre-act ResNet errs more than RKCNN-R-2 k=32 by 0.050 points (95 % interval +0.015 to +0.084; "
        "corrected p 0.037; permutation p 0.024, the smallest that 5 against 4 allow 0.0079)."
    )
    assert describe_comparison(implicit, 3) == (
        "RKCNN-I-2 k=32 and RKCNN-R-2 k=32 are not separable with 5 and 4 seeds: the difference is -0.002 points "
        "(95 % interval -0.036 to +0.031; corrected p 0.86; permutation p 0.86, the smallest that 5 against "
        "4 allow 0.0079)."
    )
    judged = describe_comparison(implicit._replace(mcnemar=McNemar(10, 5, 0.3)), 3)
    assert (
        "McNemar, seed 0 of each: 10 images are wrong in the first alone, 5 in the second, uncorrected p 0.3)" in judged
    )


def test_an_interval_that_leaves_zero_out_may_not_survive_correction(tmp_path: Path) -> None:
    put_records(tmp_path)
    resnet = report_of(tmp_path).comparisons[1]._replace(p=0.2)
    assert "are not separable with 5 and 4 seeds after correction: the difference is +0.050" in describe_comparison(
        resnet, 3
    )


def test_no_interval_without_spread(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.005,) * 2, "RKCNN-R-2@k=32": (0.004,) * 2})
    (comparison,) = report_of(tmp_path).comparisons
    assert describe_comparison(comparison, 3).startswith(
        "pre-act ResNet and RKCNN-R-2 k=32: the difference is +0.100 points, without an interval (neither side has any"
    )


def test_without_any_spread_nothing_is_said_of_a_correction(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.005,) * 2, "RKCNN-R-2@k=32": (0.004,) * 2})
    part = report_of(tmp_path)
    assert part.introduction[0].endswith("errors. No row has any spread, so there is no test over seeds.")
    assert part.findings[-1].text == "After the last epoch, against RKCNN-R-2 k=32 (0.400 %) (differences in points):"
    assert "0 comparisons" not in " ".join((*part.introduction, *part.conclusions))


def test_how_the_comparisons_were_made(tmp_path: Path) -> None:
    assert report_of(tmp_path).introduction == (
        "No comparison: RKCNN-R-2 k=32 and another row need two finished runs each, none diverged.",
    )
    put_records(tmp_path, {spec: errors[:3] for spec, errors in ERRORS.items()})
    notes = report_of(tmp_path).introduction
    assert "corrected for 4 comparisons by Holm's method" in notes[0]
    assert "the smallest p that so few seeds allow, 0.1, would be 0.4 after correction" in notes[1]
    assert notes[2].startswith("There is no McNemar test")


def test_survivors_are_not_compared_and_that_is_said(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "DenseNet-2@k=32": (0.003, None, None, 0.0031, None), "ODENet-ab@k=32": (None,)})
    assert [note for note in report_of(tmp_path).introduction if "diverged" in note] == [
        "3 of 5 runs of DenseNet (T = 2) diverged. The surviving runs are a biased sample, so this row is not compared."
    ]


def test_many_seeds_have_no_permutation_test(tmp_path: Path) -> None:
    put_records(tmp_path)
    part = report_of(tmp_path)
    comparisons = [each._replace(permutation=None) for each in part.comparisons]
    assert "permutation" not in describe_comparison(comparisons[1], 3)
    assert not any("permutation" in note for note in introduce_comparisons(part.results, comparisons))


def test_smoke_says_that_it_compares_nothing(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3, None)}, preset="smoke")
    notes = report_of(tmp_path).introduction
    assert notes[-1] == "No comparison: smoke says nothing about accuracy, however many seeds there are."


def test_other_recipes_are_marked(tmp_path: Path) -> None:
    paper, fast, smoke = (results_of(tmp_path, "mnist", preset) for preset in ("paper", "fast", "smoke"))
    assert (preset_warning(paper), paper.tag) == ("", "")
    assert preset_warning(fast) == "FAST: 20 epochs by fast-mnist, the paper has 160; not the paper's recipe"
    assert preset_warning(smoke) == "SMOKE: 40 steps on mnist-mini; says nothing about accuracy"
    assert (fast.tag, smoke.tag) == ("FAST", "SMOKE")
    assert title(smoke).endswith("; smoke in fp32, 0 of 19 runs")


@pytest.mark.parametrize(
    ("table", "known"), [("cifar10", True), ("sota-cifar100", True), ("mnist", False), ("svhn", False)]
)
def test_that_the_paper_counts_best_epochs_is_known_for_cifar_alone(tmp_path: Path, table: str, known: bool) -> None:
    said = say_paper_counts(results_of(tmp_path, table))
    assert (said == "as its public training code does") == known
    assert said.startswith("an inference") != known


def test_a_table_with_comparisons(tmp_path: Path) -> None:
    put_records(tmp_path)
    coverage, (against_paper, among), (sampling, norms) = say(tmp_path)
    assert coverage == (
        "24 runs of 5 of 19 networks. Against RKCNN-R-2 k=32, 2 of 4 err more, none less; 2 can't be told apart."
    )
    assert against_paper.text.startswith(
        "With each run counted at its best epoch, as the paper seems to count (an inference:"
    )
    assert "our means are +0.004 to +0.028 points from" in against_paper.text
    assert [word for word, _ in among.groups] == ["err more", "not separable"]
    assert sampling.startswith("Intervals are over seeds")
    assert norms == NORMS


def test_one_run_is_nothing_to_compare(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-I-2_2_2@k=120": (0.0586,)}, "cifar10", "fast")
    coverage, shown, (single,) = say(tmp_path, "cifar10")
    assert coverage == (
        "1 run of 1 of 17 networks; nothing to compare yet: RKCNN-I-2_2_2 k=120 and another row need two finished runs "
        "each, none diverged."
    )
    assert shown == ()
    assert single.startswith("RKCNN-I-2_2_2 k=120 is a single run: 5.86 %")


@pytest.mark.parametrize(("preset", "tested"), [("paper", True), ("fast", False)])
def test_other_recipes_are_not_set_against_the_paper(tmp_path: Path, preset: str, tested: bool) -> None:
    put_records(tmp_path, preset=preset)
    assert (find_agreement(results_of(tmp_path)) is not None) == tested


def test_smoke_compares_nothing(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3, 0.31)}, preset="smoke")
    coverage, shown, limits = say(tmp_path)
    assert coverage == (
        "2 runs of 1 of 19 networks; nothing to compare: smoke says nothing about accuracy, however many seeds there "
        "are."
    )
    assert (shown, limits) == ((), ())


def test_each_reference_has_its_sentence(tmp_path: Path) -> None:
    specs = ("RKCNN-R-2@k=32,norm=bn", "RKCNN-R-2@k=32,norm=gn", "ResNet@k=32", "ResNet@k=32,norm=bn")
    put_records(tmp_path, dict.fromkeys(specs, (0.003, 0.0032)), "norms")
    _, shown, _ = say(tmp_path, "norms")
    assert ["norm=gn" in statement.text for statement in shown] == [True, False]
    assert all("Holm's correction for 2 comparisons" in statement.text for statement in shown)


def test_what_diverged_is_said(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "Identity@k=32": (0.006, None)})
    _, shown, _ = say(tmp_path)
    assert shown[1].text.startswith("1 of 2 runs of Identity@k=32 diverged")


def test_nothing_is_minus_zero() -> None:
    assert signed(-1e-7, 3) == "+0.000"
    assert signed(-0.0005, 3) == "-0.050"
