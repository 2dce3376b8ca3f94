"""Student's t is scipy's, to many digits, also between whole degrees of freedom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from rkcnn.error import InputError
from rkcnn.report.student import incomplete_beta, quantile, tail

DOFS = st.floats(0.5, 2000)


@given(st.floats(-200, 200), DOFS)
def test_tail_is_scipys(t: float, dof: float) -> None:
    assert tail(t, dof) == pytest.approx(2 * stats.t.sf(abs(t), dof), rel=1e-9, abs=1e-300)


@given(st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]), st.floats(1, 2000))
def test_quantile_is_scipys(level: float, dof: float) -> None:
    assert quantile(level, dof) == pytest.approx(stats.t.ppf((1 + level) / 2, dof), rel=1e-9)


@given(st.floats(0.1, 300), st.floats(0.1, 300), st.floats(0, 1))
def test_incomplete_beta_is_scipys(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x, 1 - x) == pytest.approx(special.betainc(a, b, x), rel=1e-9, abs=1e-12)


def test_one_degree_of_freedom_is_cauchy_and_many_are_normal() -> None:
    assert tail(1, 1) == pytest.approx(0.5)
    assert quantile(0.95, 1e7) == pytest.approx(1.959964, abs=1e-6)
    assert tail(0, 3.5) == 1
    assert tail(1e200, 3.5) == 0


def test_what_is_no_distribution_is_a_sentence() -> None:
    with pytest.raises(InputError, match="more than 0"):
        tail(1, 0)
    with pytest.raises(InputError, match="between 0 and 1"):
        quantile(95, 4)
