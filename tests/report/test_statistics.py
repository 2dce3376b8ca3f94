"""Statistics of a few runs, and Student's t, each against scipy or its definition."""

from __future__ import annotations

from math import comb, inf, nan

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from rkcnn.error import InputError
from rkcnn.report.statistics import (
    Sample,
    correct_by_holm,
    incomplete_beta,
    independent_standard_error,
    paired,
    paired_standard_error,
    permutation_test,
    pool_deviations,
    t_quantile,
    two_sided_p,
    welch,
)

WRONG = st.integers(0, 10_000)  # of 10,000 images
RUNS = st.lists(WRONG, min_size=2, max_size=6)
DOFS = st.floats(0.5, 2000)
FEW = st.lists(st.integers(20, 40), min_size=1, max_size=5)  # close together, so that splits tie


def errors(wrong: list[int], images: int = 10_000) -> list[float]:
    return [k / images for k in wrong]


@given(st.lists(WRONG, min_size=1, max_size=6))
def test_a_sample_is_its_mean_std_number_and_least(wrong: list[int]) -> None:
    values = errors(wrong)
    sample = Sample.of(values)
    assert sample.mean == pytest.approx(np.mean(values))
    assert (sample.n, sample.min) == (len(values), min(values))
    if len(values) == 1:
        assert sample.std is None
    else:
        assert sample.std == pytest.approx(np.std(values, ddof=1), abs=1e-15)


@pytest.mark.filterwarnings("ignore:Precision loss")  # scipy's, where one side has no spread
@settings(deadline=None)
@given(RUNS, RUNS, st.sampled_from([0.9, 0.95, 0.99]))
def test_welch_is_scipys(a: list[int], b: list[int], level: float) -> None:
    assume(len({*a}) > 1 or len({*b}) > 1)
    ours = welch(errors(a), errors(b), level)
    theirs = stats.ttest_ind(errors(a), errors(b), equal_var=False)
    low, high = theirs.confidence_interval(level)
    assert ours.interval == pytest.approx((low, high), rel=1e-6, abs=1e-9)
    assert ours.value == pytest.approx(np.mean(errors(a)) - np.mean(errors(b)), abs=1e-12)
    assert ours.dof == pytest.approx(theirs.df, rel=1e-6)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
    assert ours.missing is None


def test_one_run_has_no_interval_and_says_so() -> None:
    found = welch([0.003], [0.004, 0.005])
    assert found.value == pytest.approx(-0.0015)
    assert (found.interval, found.dof, found.p) == (None, None, None)
    assert found.missing is not None
    assert found.missing.startswith("1 against 2 runs")


def test_no_spread_at_all_is_no_certainty() -> None:
    found = welch([0.003] * 3, [0.004] * 3)
    assert (found.interval, found.p) == (None, None)
    assert "any spread" in (found.missing or "")
    one_sided = welch([0.003] * 3, [0.004, 0.005, 0.006])
    assert one_sided.dof == pytest.approx(2)
    assert one_sided.p == pytest.approx(stats.ttest_1samp([0.004, 0.005, 0.006], 0.003).pvalue)


@settings(deadline=None)
@given(st.lists(st.tuples(WRONG, WRONG), min_size=2, max_size=6), st.sampled_from([0.9, 0.95, 0.99]))
def test_pairs_are_compared_as_by_scipy(wrong: list[tuple[int, int]], level: float) -> None:
    a, b = (errors(list(side)) for side in zip(*wrong, strict=True))
    assume(len({one - two for one, two in wrong}) > 1)
    ours, theirs = paired(a, b, level), stats.ttest_rel(a, b)
    assert ours.interval == pytest.approx(tuple(theirs.confidence_interval(level)), rel=1e-6, abs=1e-9)
    assert ours.value == pytest.approx(np.mean(a) - np.mean(b), abs=1e-12)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-6, abs=1e-12)
    assert ours.dof == theirs.df


@pytest.mark.parametrize(("a", "b"), [([0.004], [0.005]), ([0.004, 0.006], [0.005, 0.007])])
def test_pairs_without_spread_have_no_interval(a: list[float], b: list[float]) -> None:
    found = paired(a, b)
    assert found.value == pytest.approx(-0.001)
    assert (found.interval, found.p) == (None, None)
    assert found.missing is not None


@settings(max_examples=50, deadline=None)
@given(FEW, FEW)
def test_permutation_is_scipys(a: list[int], b: list[int]) -> None:
    assume(len(a) > 1 and len(b) > 1)  # scipy takes no fewer
    theirs = stats.permutation_test(
        (np.array(a, float), np.array(b, float)),
        lambda x, y, axis: np.abs(np.mean(x, axis) - np.mean(y, axis)),
        n_resamples=inf,
        alternative="greater",  # of the distance; scipy's two-sided doubles a two_sided_p instead
        vectorized=True,
    )
    found = permutation_test(errors(a), errors(b))
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.splits == comb(len(a) + len(b), len(a))


@given(FEW, FEW, st.sampled_from([7, 2_000, 10_000, 26_032, 604_388]))
def test_ties_are_counted_as_whole_numbers_would(a: list[int], b: list[int], images: int) -> None:
    """Errors k/N are not exact in binary; the integers k are."""
    assert (
        permutation_test(errors(a, images), errors(b, images)).p
        == permutation_test([float(k) for k in a], [float(k) for k in b]).p
    )


@given(FEW, FEW)
def test_p_has_its_bounds_and_no_side(a: list[int], b: list[int]) -> None:
    p, smallest, _ = permutation_test(a, b)
    assert smallest <= p <= 1
    assert permutation_test(b, a).p == p
    assert permutation_test([-x for x in a], [-x for x in b]).p == p
    if {*a} == {*b} and len({*a}) == 1:
        assert p == 1


@pytest.mark.parametrize(("n", "m", "smallest"), [(5, 5, 2 / 252), (3, 3, 0.1), (3, 5, 1 / 56), (1, 1, 1), (1, 4, 0.2)])
def test_the_smallest_p_is_reached_by_runs_far_apart(n: int, m: int, smallest: float) -> None:
    apart = permutation_test([100.0 + i for i in range(n)], [float(i) for i in range(m)])
    assert apart.smallest == pytest.approx(smallest)
    # with unequal sides the small side far from the large one has no mirror image
    assert apart.p == pytest.approx(smallest)


def test_too_many_splits_are_refused_with_the_limit() -> None:
    with pytest.raises(InputError, match=r"705,432 splits.*200,000"):
        permutation_test([0.1] * 11, [0.2] * 11)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_by_its_definition(ps: list[float]) -> None:
    """A hypothesis is rejected at level x, stepping down, exactly where its corrected p is at most x."""
    corrected = correct_by_holm(ps)
    for level in (0.01, 0.05, 0.2, 0.7):
        rejected: set[int] = set()
        for rank, index in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
            if ps[index] * (len(ps) - rank) > level:
                break
            rejected.add(index)
        assert rejected == {i for i, p in enumerate(corrected) if p <= level}
    assert all(p <= c <= min(1, len(ps) * p) for p, c in zip(ps, corrected, strict=True))
    assert correct_by_holm(ps, lost=2) == correct_by_holm([*ps, 1.0, 1.0])[: len(ps)], (
        "what is lost counts as what shows nothing"
    )


def test_holm_keeps_the_order_given() -> None:
    assert correct_by_holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert correct_by_holm([]) == []


@pytest.mark.parametrize("values", [[], [nan], [0.1, inf]])
def test_what_is_no_sample_is_a_sentence(values: list[float]) -> None:
    with pytest.raises(InputError, match="statistics need"):
        Sample.of(values)
    with pytest.raises(InputError, match="statistics need"):
        permutation_test(values, [0.1])


@given(st.floats(-200, 200), DOFS)
def test_tail_is_scipys(t: float, dof: float) -> None:
    assert two_sided_p(t, dof) == pytest.approx(2 * stats.t.sf(abs(t), dof), rel=1e-9, abs=1e-300)


@given(st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]), st.floats(1, 2000))
def test_quantile_is_scipys(level: float, dof: float) -> None:
    assert t_quantile(level, dof) == pytest.approx(stats.t.ppf((1 + level) / 2, dof), rel=1e-9)


@given(st.floats(0.1, 300), st.floats(0.1, 300), st.floats(0, 1))
def test_incomplete_beta_is_scipys(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x, 1 - x) == pytest.approx(special.betainc(a, b, x), rel=1e-9, abs=1e-12)


def test_one_degree_of_freedom_is_cauchy_and_many_are_normal() -> None:
    assert two_sided_p(1, 1) == pytest.approx(0.5)
    assert t_quantile(0.95, 1e7) == pytest.approx(1.959964, abs=1e-6)
    assert two_sided_p(0, 3.5) == 1
    assert two_sided_p(1e200, 3.5) == 0


def test_what_is_no_distribution_is_a_sentence() -> None:
    with pytest.raises(InputError, match="more than 0"):
        two_sided_p(1, 0)
    with pytest.raises(InputError, match="between 0 and 1"):
        t_quantile(95, 4)


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_standard_errors_of_a_difference_are_those_of_many_test_sets(shared: float) -> None:
    """Two networks of 2 % and 3 % error that share a part of their mistakes, on 20,000 draws of 5,000 images."""
    rng = np.random.default_rng(0)
    images, both = 5_000, 0.02 * shared
    p_values = [both, 0.02 - both, 0.03 - both, 0.95 + both]  # both wrong, first alone, second alone, none
    draws = rng.multinomial(images, p_values, 20_000)
    spread = ((draws[:, 1] - draws[:, 2]) / images).std()
    paired = paired_standard_error(round(images * (p_values[1] + p_values[2])), images)
    independent = independent_standard_error(0.02, 0.03, images)
    assert paired == pytest.approx(spread, rel=0.03)
    assert independent > 0.97 * spread, "the bound is for networks that share none or few of their mistakes"


def test_deviations_are_pooled_by_degrees_of_freedom() -> None:
    values = [[0.1, 0.4], [0.2, 0.3, 0.25, 0.22, 0.31], [0.5]]
    squares = sum((x - np.mean(each)) ** 2 for each in values for x in each)
    assert pool_deviations([Sample.of(each) for each in values]) == pytest.approx((squares / 5) ** 0.5)
    assert pool_deviations([Sample.of([0.5])]) is None
