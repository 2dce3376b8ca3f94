"""Errors counted on one test set, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rkcnn.error import InputError
from rkcnn.evaluation.binomial import mcnemar, sampling_error, wilson

FLAGS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60)


@given(FLAGS)
def test_mcnemar_is_the_binomial_test(pairs: list[tuple[bool, bool]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    found = mcnemar(a, b)
    assert found[:2] == (sum(x and not y for x, y in pairs), sum(y and not x for x, y in pairs))
    discordant = found.only_a + found.only_b
    expected = stats.binomtest(found.only_a, discordant).pvalue if discordant else 1.0
    assert found.p == pytest.approx(expected)
    assert mcnemar(b, a) == (found.only_b, found.only_a, found.p)


def test_mcnemar_takes_arrays_of_a_whole_test_set() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(26_032) < 0.4, rng.random(26_032) < 0.42
    found = mcnemar(a, b)
    assert found.only_a == int((a & ~b).sum())
    assert found.p == pytest.approx(stats.binomtest(found.only_a, found.only_a + found.only_b).pvalue, rel=1e-6)


def test_mcnemar_refuses_unequal_sets() -> None:
    with pytest.raises(InputError, match="same images"):
        mcnemar([True], [True, False])


@given(st.integers(1, 30_000), st.floats(0, 1), st.sampled_from([0.9, 0.95, 0.99]))
def test_wilson_is_scipys(n: int, share: float, level: float) -> None:
    wrong = round(share * n)
    expected = stats.binomtest(wrong, n).proportion_ci(level, method="wilson")
    assert wilson(wrong, n, level) == pytest.approx(tuple(expected), abs=1e-9)


@pytest.mark.parametrize(("wrong", "n"), [(-1, 10), (11, 10), (0, 0)])
def test_wilson_refuses_what_cant_be_counted(wrong: int, n: int) -> None:
    with pytest.raises(InputError, match="0 to n wrong"):
        wilson(wrong, n)


def test_the_test_sets_own_error() -> None:
    found = sampling_error(0.003, 10_000)
    assert round(100 * found.se, 3) == 0.055
    assert round(100 * found.half, 3) == 0.107
    drawn = np.random.default_rng(0).binomial(10_000, 0.003, 100_000) / 10_000
    assert found.se == pytest.approx(drawn.std(), rel=0.02)
    with pytest.raises(InputError, match="fraction"):
        sampling_error(3, 10_000)
    with pytest.raises(InputError, match="between 0 and 1"):
        wilson(1, 2, 95)
