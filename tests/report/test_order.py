"""The order of networks in our runs and in the paper."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from report.records import ERRORS, put_records, results_of
from rkcnn.report.order import correlate_ranks, find_order


def test_pairs_are_told_apart_by_welch_and_holm(tmp_path: Path) -> None:
    """The oracle is scipy's, with Holm's correction written out; a run's best epoch is 0.0002 below its last."""
    put_records(tmp_path)
    pairs = list(combinations(ERRORS.values(), 2))
    p_values = sorted(stats.ttest_ind(one, two, equal_var=False).pvalue for one, two in pairs)
    apart = 0
    for i, p in enumerate(p_values):
        if p * (len(p_values) - i) >= 0.05:
            break
        apart += 1
    found = find_order(results_of(tmp_path))
    assert found
    assert (found.networks, found.pairs, found.by_ours, found.agreeing) == (5, 10, apart, apart)
    assert 0 < apart < 10
    printed = {"ResNet@k=32": 0.372, "ResNet-bottleneck@k=32": 0.486, "RKCNN-E-2@k=32": 0.364}
    printed |= {"RKCNN-I-2@k=32": 0.316, "RKCNN-R-2@k=32": 0.308}
    gaps = [100 * fmean(ERRORS[name]) - 0.02 - mean for name, mean in printed.items()]
    assert sorted(100 * value for value in found.differences) == pytest.approx(sorted(gaps))
    means = [fmean(ERRORS[name]) for name in printed]
    assert found.correlation == pytest.approx(stats.spearmanr(means, list(printed.values())).statistic)


def test_an_order_against_the_papers_is_counted(tmp_path: Path) -> None:
    """In the paper the bottleneck errs more than the RKCNN-R; here it errs less."""
    put_records(tmp_path, {"ResNet-bottleneck@k=32": (0.002, 0.0021), "RKCNN-R-2@k=32": (0.006, 0.0061)})
    found = find_order(results_of(tmp_path))
    assert found
    assert (found.pairs, found.same, found.by_ours, found.agreeing, found.correlation) == (1, 0, 1, 0, None)


def test_pairs_that_were_lost_to_divergence_count_among_the_tests(tmp_path: Path) -> None:
    errors = {"ResNet-bottleneck@k=32": (0.0052, 0.0053, 0.0054), "RKCNN-R-2@k=32": (0.0046, 0.0047, 0.0050)}
    put_records(tmp_path / "all", errors)
    put_records(tmp_path / "lost", {**errors, "ResNet@k=32": (0.004, None), "DenseNet-2@k=32": (None,)})
    alone, lost = (find_order(results_of(tmp_path / name)) for name in ("all", "lost"))
    assert alone
    assert lost
    assert (alone.networks, lost.networks) == (2, 2)
    assert (alone.by_ours, lost.by_ours) == (1, 0), "one test, and one of six"


def test_single_runs_are_not_tested_and_one_network_has_no_order(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet-bottleneck@k=32": (0.006,), "RKCNN-R-2@k=32": (0.004,)})
    found = find_order(results_of(tmp_path))
    assert found
    assert (found.same, found.by_ours, found.agreeing) == (1, None, None)
    assert find_order(results_of(tmp_path, "cifar10", "fast")) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=12))
def test_the_rank_correlation_is_scipys(values: list[tuple[int, int]]) -> None:
    one, two = zip(*values, strict=True)
    found = correlate_ranks(one, two)
    if len(set(one)) == 1 or len(set(two)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(stats.spearmanr(one, two).statistic)
