"""Each verdict, from samples made for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from report.records import ERRORS, put_records
from rkcnn.model.create import create_model
from rkcnn.record.tables import TABLES
from rkcnn.report.claims.claims import CLAIMS, Claim, Kind, Pair
from rkcnn.report.claims.judge import (
    CORRECTION,
    COUNTED_PARAMETERS,
    judge,
    judge_claims,
    judge_share,
    list_verdicts,
    speaks_of,
)
from rkcnn.report.results import read_records
from rkcnn.report.statistics import Sample

BY_ID = {claim.id: claim for claim in CLAIMS}
A, B, C = "RKCNN-I-2@k=32", "RKCNN-R-2@k=32", "RKCNN-E-2@k=32"
LOW, HIGH, WIDE = [0.0029, 0.0030, 0.0031], [0.0059, 0.0060, 0.0061], [0.001, 0.005, 0.009]
Records = dict[tuple[str, str], Sample]


def claim_of(kind: Kind, *pairs: tuple[str, str], usually: bool = False) -> Claim:
    pairs_of_claim = tuple(Pair("mnist", *pair) for pair in pairs)
    return Claim("id", "short", "sentence", 1, ("tb:MNIST",), kind, pairs_of_claim, usually=usually)


def records_of(**errors: list[float]) -> Records:
    return {("mnist", {"a": A, "b": B, "c": C}[name]): Sample.of(values) for name, values in errors.items() if values}


@pytest.mark.parametrize(
    ("kind", "a", "b", "verdict"),
    [
        ("better", LOW, HIGH, "supported"),
        ("better", HIGH, LOW, "contradicted"),
        ("better", LOW, WIDE, "undecided"),
        ("alike", LOW, [0.0030, 0.0031, 0.0032], "supported"),
        ("alike", LOW, WIDE, "undecided"),
        ("alike", WIDE, WIDE, "undecided"),  # equal means, and nothing known
        ("alike", LOW, [0.0035, 0.0036, 0.0037], "undecided"),  # they differ, perhaps by less than the margin
        ("alike", LOW, HIGH, "contradicted"),
        ("alike", HIGH, LOW, "contradicted"),
        ("no better", HIGH, LOW, "supported"),
        ("no better", LOW, [0.0030, 0.0031, 0.0032], "supported"),  # a gain that may be none, and below the margin
        ("no better", LOW, [0.00325, 0.00330, 0.00335], "contradicted"),  # below the margin, but a gain
        ("no better", WIDE, LOW, "undecided"),
        ("no better", LOW, HIGH, "contradicted"),
    ],
)
def test_one_comparison(kind: Kind, a: list[float], b: list[float], verdict: str) -> None:
    found = judge(claim_of(kind, (A, B)), records_of(a=a, b=b))
    assert found.verdict == found.heading == verdict
    assert "% interval" in found.why
    assert A in found.why
    assert ("margin" in found.why) == (kind != "better")
    assert found.missing == ()


def test_a_difference_is_told_in_points_with_its_interval() -> None:
    why = judge(claim_of("better", (A, B)), records_of(a=LOW, b=HIGH)).why
    assert why.startswith(f"1 tested: 1 as claimed; {A} minus {B} on mnist is -0.300 points (95 % interval -0.323 to ")
    assert "corrected p 3.3e-06" in why


def test_one_against_decides_and_one_undecided_holds_up() -> None:
    claim = claim_of("better", (A, B), (A, C))
    assert judge(claim, records_of(a=LOW, b=HIGH, c=HIGH)).verdict == "supported"
    assert judge(claim, records_of(a=LOW, b=HIGH, c=WIDE)).verdict == "undecided"
    mixed = judge(claim, records_of(a=[0.0044, 0.0045, 0.0046], b=HIGH, c=LOW))
    assert mixed.verdict == "contradicted"
    assert mixed.heading == "contradicted (1 as claimed, 1 against)"
    assert mixed.why.startswith("2 tested: 1 as claimed, 1 against; RKCNN")
    assert C in mixed.why


def test_usually_goes_by_the_greater_part() -> None:
    pairs = (A, B), (A, C), (B, C)
    errors = records_of(a=LOW, b=[0.0044, 0.0045, 0.0046], c=HIGH)
    assert judge(claim_of("better", *pairs, usually=True), errors).verdict == "supported"
    one_against = (A, B), (A, C), (C, B)
    assert judge(claim_of("better", *one_against), errors).verdict == "contradicted"
    assert judge(claim_of("better", *one_against, usually=True), errors).verdict == "supported"
    backwards = (B, A), (C, A), (B, C)
    assert judge(claim_of("better", *backwards, usually=True), errors).verdict == "contradicted"
    untested = *pairs, (A, "RKCNN-R-2@k=26"), (B, "RKCNN-R-2@k=26"), (C, "RKCNN-R-2@k=26")
    half = judge(claim_of("better", *untested, usually=True), errors)
    assert half.heading == "undecided (3 of 6 comparisons: 3 as claimed)", "more than half of all must be tested so"
    evenly = judge(claim_of("better", (A, B), (C, B), usually=True), errors)
    assert evenly.verdict == "undecided"
    assert evenly.why == "2 tested: 1 as claimed, 1 against"


def test_p_is_corrected_for_the_number_of_comparisons() -> None:
    """p = 0.032 alone; with a second comparison that says nothing it is 0.063."""
    b = [0.0033, 0.0035, 0.0037]
    assert judge(claim_of("better", (A, B)), records_of(a=LOW, b=b)).verdict == "supported"
    both = judge(claim_of("better", (A, B), (A, C)), records_of(a=LOW, b=b, c=WIDE))
    assert [f.verdict for f in both.findings] == ["undecided", "undecided"]
    assert both.findings[0].p == pytest.approx(2 * (both.findings[0].difference.p or 0))


@pytest.mark.parametrize("b", [None, [], [0.003]])
def test_what_has_no_two_runs_is_not_yet_tested(b: list[float] | None) -> None:
    errors = records_of(a=LOW, **({} if b is None else {"b": b}))
    nothing = judge(claim_of("better", (A, B)), errors)
    assert (nothing.verdict, nothing.why) == ("not yet tested", "not yet tested: mnist")
    assert nothing.missing == (Pair("mnist", A, B),)
    some = judge(claim_of("better", (A, B), (A, C)), errors | records_of(c=HIGH))
    assert some.verdict == "supported"
    assert some.heading == "supported so far (1 of 2 comparisons)"
    assert some.why.endswith(f"; not yet tested: mnist (fewer than 2 runs of {B})")


def test_survivors_judge_nothing_and_are_named() -> None:
    errors = records_of(a=LOW, b=HIGH, c=HIGH)
    lost = {("mnist", B): "3 of 5"}
    alone = judge(claim_of("better", (A, B)), errors, lost)
    assert (alone.verdict, alone.findings) == ("not judged", ())
    assert alone.why == f"not judged: {B} on mnist (3 of 5 runs diverged)"
    some = judge(claim_of("better", (A, B), (A, C)), errors, lost)
    assert some.heading == "supported so far (1 of 2 comparisons; 1 not judged because runs diverged)"
    (found,) = some.findings
    assert found.p == pytest.approx(2 * (found.difference.p or 0)), "corrected as if all were there"
    assert some.why.endswith(f"; {alone.why}")
    waiting = judge(claim_of("better", (A, B), (A, C)), records_of(a=LOW), lost)
    assert waiting.why == f"{alone.why}; not yet tested: mnist (fewer than 2 runs of {C})"


@pytest.mark.parametrize("kind", ["better", "no better"])
def test_a_divergence_beside_it_never_turns_a_comparison_into_support(kind: Kind) -> None:
    """A gain within the margin, clear by itself: no better is contradicted, and with others lost undecided."""
    gained = [0.0029, 0.0030, 0.0031]
    errors = records_of(a=gained, b=[error + 0.00024 for error in gained], c=HIGH)
    alone = judge(claim_of(kind, (A, B)), errors)
    beside = judge(claim_of(kind, (A, B), (C, B)), errors, {("mnist", C): "3 of 5"})
    assert alone.findings[0].p < 0.05 < beside.findings[0].p
    assert alone.verdict == ("supported" if kind == "better" else "contradicted")
    assert beside.findings[0].verdict == "undecided"


def test_runs_without_any_spread_judge_nothing() -> None:
    flat = records_of(a=[0.003] * 3, b=[0.006] * 3)
    found = judge(claim_of("better", (A, B), (A, C)), flat | records_of(c=HIGH))
    assert found.heading == "supported so far (1 of 2 comparisons)"
    assert found.why.endswith(f"; not judged: {A} and {B} on mnist (no spread on either side)")
    assert found.findings[0].p == found.findings[0].difference.p, "corrected for those that were tested"
    assert judge(claim_of("better", (A, B)), flat).verdict == "not judged"


def test_two_that_differ_by_less_than_the_margin_are_alike_and_it_says_so() -> None:
    found = judge(claim_of("alike", (A, B)), records_of(a=[0.00299, 0.00300, 0.00301], b=[0.00319, 0.00320, 0.00321]))
    assert found.verdict == "supported"
    assert found.why.endswith("; they differ, by less than the margin)")


@given(st.lists(st.lists(st.integers(20, 60), min_size=2, max_size=5), min_size=3, max_size=3))
def test_a_claim_and_its_opposite_are_never_both_supported(wrong: list[list[int]]) -> None:
    a, b, c = ([k / 10_000 for k in runs] for runs in wrong)
    errors = records_of(a=a, b=b, c=c)
    there = judge(claim_of("better", (A, B), (B, C)), errors).verdict
    back = judge(claim_of("better", (B, A), (C, B)), errors).verdict
    assert {there, back} in (
        {"supported", "contradicted"},
        {"undecided"},
        {"contradicted"},
        {"undecided", "contradicted"},
        {"not judged"},
    )


def test_the_papers_claims_are_judged_by_its_tables() -> None:
    assert all(judge(claim, {}).verdict == "not yet tested" for claim in CLAIMS if claim.kind != "share")
    errors = records_of(a=LOW, b=LOW, c=HIGH)
    found = judge(BY_ID["e-worse"], errors)
    assert found.heading == "supported so far (2 of 8 comparisons)"
    assert found.why.endswith("not yet tested: svhn, cifar10, cifar100")
    assert judge(BY_ID["i-r-alike"], errors).heading == "supported so far (1 of 4 comparisons)"


def test_each_claim_is_judged_from_last_epochs(tmp_path: Path) -> None:
    put_records(tmp_path)
    judged = {each.claim.id: each for each in judge_claims(read_records(tmp_path)[0], "paper")}
    assert list(judged) == [claim.id for claim in CLAIMS]
    assert judged["bottleneck"].heading == "supported so far (1 of 4 comparisons)"
    assert judged["e-worse"].heading == "undecided (2 of 8 comparisons: 1 as claimed, 1 undecided)"
    assert judged["multistep"].verdict == "not yet tested"


def test_a_verdict_names_the_rows_whose_runs_have_a_note(tmp_path: Path) -> None:
    ours = {spec: errors for spec, errors in ERRORS.items() if spec != "ResNet@k=32"}
    put_records(tmp_path, ours, notes=("Found by a check and corrected by hand: another commit.",))
    put_records(tmp_path, {"ResNet@k=32": ERRORS["ResNet@k=32"]}, notes=("Trained with other first weights.",))
    judged = {each.claim.id: each for each in judge_claims(read_records(tmp_path)[0], "paper")}
    assert judged["bottleneck"].noted == ("pre-act ResNet",)
    assert judged["bottleneck"].caveat.endswith("; see the note on the runs of pre-act ResNet")
    assert not judged["e-worse"].noted, "a corrected record has the same errors"


def test_the_papers_own_numbers_are_judged_by_the_same_rules(tmp_path: Path) -> None:
    """The oracle for one of them is scipy's."""
    put_records(tmp_path)
    judged = {each.claim.id: each for each in judge_claims(read_records(tmp_path)[0], "paper")}
    assert judged["bottleneck"].by_paper == "supported"
    assert judged["e-worse"].by_paper == "undecided (6 as claimed, 2 undecided)"
    assert judged["beats-numerical-matched"].by_paper == judged["params-share"].by_paper == "", "it printed none"
    # the two undecided are on MNIST: E 0.364±0.039 against I 0.316±0.033 and R 0.308±0.024, five runs each
    p_values = [
        stats.ttest_ind_from_stats(mean, std, 5, 0.364, 0.039, 5, equal_var=False).pvalue
        for mean, std in ((0.316, 0.033), (0.308, 0.024))
    ]
    assert min(p_values) > 0.01  # the smallest p that could separate among eight is 0.05 / 8


def test_survivors_of_diverged_rows_judge_nothing(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.002, 0.0021, None, None, None), "ResNet-bottleneck@k=32": (0.004, 0.0041)})
    judged = {each.claim.id: each for each in judge_claims(read_records(tmp_path)[0], "paper")}
    assert judged["bottleneck"].verdict == "not judged"
    lines = " ".join(list_verdicts(judged.values()))
    assert "not judged: the bottleneck doesn't help ResNet (not judged: ResNet@k=32 on mnist (3 of 5 runs" in lines


def test_presets_are_apart_and_smoke_judges_nothing(tmp_path: Path) -> None:
    put_records(tmp_path)
    put_records(tmp_path, {"ResNet@k=32": (0.3,)}, preset="smoke")
    records, _ = read_records(tmp_path)
    assert judge_claims(records, "fast") == []
    assert judge_claims(records, "smoke") == []


def test_parameters_need_no_training(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004,)})
    judged = judge_claims(read_records(tmp_path)[0], "paper")
    (share,) = (each for each in judged if each.claim.kind == "share")
    assert share.verdict == "close"
    assert speaks_of(share, "sota-mnist")
    assert not speaks_of(share, "cifar10")


def test_a_claim_speaks_of_the_tables_it_compares_in(tmp_path: Path) -> None:
    put_records(tmp_path)
    judged = {each.claim.id: each for each in judge_claims(read_records(tmp_path)[0], "paper")}
    assert speaks_of(judged["bottleneck"], "cifar10")
    assert not speaks_of(judged["bottleneck"], "sota-cifar10")
    assert speaks_of(judged["beats-numerical-matched"], "norms")


def test_one_line_a_claim_and_one_for_the_untested(tmp_path: Path) -> None:
    put_records(tmp_path)
    lines = list(list_verdicts(judge_claims(read_records(tmp_path)[0], "paper")))
    assert len(lines) == 7
    assert lines[0] == CORRECTION
    assert lines[3].startswith("supported so far (1 of 4 comparisons): the bottleneck doesn't help ResNet (1 tested")
    assert lines[3].endswith("34.86 K against 52.23 K on MNIST).")  # its caveat
    assert lines[-1].startswith("not yet tested: RKCNN errs less than every numerical model on MNIST when")


(CLAIM,) = (claim for claim in CLAIMS if claim.kind == "share")


def test_shares_of_parameters() -> None:
    found = judge_share(CLAIM, COUNTED_PARAMETERS)
    assert found.heading == "close (19.6 to 37.6 % as counted)"
    assert "prints 0.22 M for networks of 208,266" in found.why
    assert judge_share(CLAIM, {**COUNTED_PARAMETERS, "RKCNN-I-2@k=32": 120_000}).verdict == "contradicted"


def test_the_claimed_percentages_support_it() -> None:
    params = {**COUNTED_PARAMETERS, "RKNet-64": 220_000, "ODENet-64": 220_000, "RKCNN-E-2@k=32": 60_000}
    assert judge_share(CLAIM, params).heading == "supported (21.2 to 35.6 % as counted)"


def test_every_network_of_the_table_is_counted() -> None:
    assert tuple(COUNTED_PARAMETERS) == TABLES["sota-mnist"].specs


@pytest.mark.parametrize("name", COUNTED_PARAMETERS)
def test_the_networks_have_so_many(name: str) -> None:
    assert sum(weight.numel() for weight in create_model(name, channels=1).parameters()) == COUNTED_PARAMETERS[name]
