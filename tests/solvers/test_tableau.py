"""Rooted trees, order conditions and tableaus."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import factorial, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.error import InputError
from rkcnn.solvers.methods import TABLEAUS, dopri5, euler, gauss3, heun, rk4, tsit5
from rkcnn.solvers.tableau import Tableau, Tree, density, elementary_weights, order_defect, rooted_trees, size

COUNTS = (1, 1, 2, 4, 9, 20, 48)


def symmetry(tree: Tree) -> int:
    return prod(factorial(times) * symmetry(branch) ** times for branch, times in Counter(tree).items())


def tall(nodes: int) -> Tree:
    return () if nodes == 1 else (tall(nodes - 1),)


def bushy(nodes: int) -> Tree:
    return ((),) * (nodes - 1)


@pytest.mark.parametrize(("nodes", "count"), list(enumerate(COUNTS, start=1)))
def test_count_and_labellings(nodes: int, count: int) -> None:
    trees = rooted_trees(nodes)
    assert len(set(trees)) == len(trees) == count
    assert {size(tree) for tree in trees} == {nodes}
    # Cayley: n^(n-1) rooted labelled trees; (n-1)! of them grow monotonically from the root
    assert sum(factorial(nodes) // symmetry(tree) for tree in trees) == nodes ** (nodes - 1)
    assert sum(factorial(nodes) / (symmetry(t) * density(t)) for t in trees) == factorial(nodes - 1)
    assert density(tall(nodes)) == factorial(nodes)
    assert density(bushy(nodes)) == nodes


def test_elementary_weights_of_tall_and_bushy_trees() -> None:
    a = ((0.0, 0.0), (0.5, 0.25))
    assert elementary_weights((), a) == [1, 1]
    assert elementary_weights(bushy(4), a) == [0, 0.75**3]  # c^3
    assert elementary_weights(tall(3), a) == [0, 0.25 * 0.75]  # A A 1
    assert order_defect(a, (0.0, 1.0), 2) == pytest.approx(0.25)  # b c = 3/4, not 1/2


methods = st.sampled_from(list(TABLEAUS.values()))
shifts = st.floats(1e-6, 1e3, exclude_min=True).flatmap(lambda size: st.sampled_from([size, -size]))


def shifted(row: Sequence[float], i: int, by: float) -> tuple[float, ...]:
    return (*row[:i], row[i] + by, *row[i + 1 :])


def perturbed(method: Tableau, part: str, i: int, j: int, by: float) -> dict[str, Any]:
    """The change of one coefficient, as dataclasses.replace takes it."""
    if part != "a":
        return {part: shifted(getattr(method, part), i, by)}
    return {"a": (*method.a[:i], shifted(method.a[i], j, by), *method.a[i + 1 :])}


@given(methods, st.data(), shifts)
def test_refuses_any_perturbed_coefficient(method: Tableau, data: st.DataObject, by: float) -> None:
    part = data.draw(st.sampled_from(["a", "b", "c"] + ["embedded"] * (method.embedded is not None)))
    i, j = (data.draw(st.integers(0, method.stages - 1)) for _ in "ij")
    with pytest.raises(InputError, match=f"tableau {method.name}"):
        dataclasses.replace(method, **perturbed(method, part, i, j, by))


@given(methods.filter(lambda method: method.order > 1), st.data(), shifts)
def test_refuses_a_stage_moved_with_its_node(method: Tableau, data: st.DataObject, by: float) -> None:
    """The row sums hold, so that only the order conditions can see it."""
    i = data.draw(st.sampled_from([i for i, b in enumerate(method.b) if b != 0]))
    j = data.draw(st.integers(0, method.stages - 1))
    change = perturbed(method, "a", i, j, by)
    with pytest.raises(InputError, match="order condition"):
        dataclasses.replace(method, **change, c=tuple(sum(row) for row in change["a"]))


@given(methods)
def test_accepts_its_order_and_every_lower_one(method: Tableau) -> None:
    for order in range(1, method.order + 1):
        dataclasses.replace(method, order=order)


@pytest.mark.parametrize("method", list(TABLEAUS.values()), ids=list(TABLEAUS))
def test_refuses_the_next_order(method: Tableau) -> None:
    with pytest.raises(InputError, match="order condition fails"):
        dataclasses.replace(method, order=method.order + 1)


def test_gauss3_is_of_order_6_not_7() -> None:
    assert dataclasses.replace(gauss3, order=6) == gauss3
    with pytest.raises(InputError, match="order 7"):
        dataclasses.replace(gauss3, order=7)


@pytest.mark.parametrize("pair", [dopri5, tsit5], ids=lambda pair: pair.name)
def test_embedded_weights_have_their_own_order(pair: Tableau) -> None:
    assert (pair.order, pair.embedded_order) == (5, 4)
    with pytest.raises(InputError, match="embedded weights claimed to be of order 5"):
        dataclasses.replace(pair, embedded_order=5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": ((0.0,),)}, "disagree in size"),
        ({"a": ((0.0, 0.0), (1.0,))}, "disagree in size"),
        ({"b": (1.0,)}, "disagree in size"),
        ({"c": (0.0, 1.0, 1.0)}, "disagree in size"),
        ({"a": (), "b": (), "c": ()}, "disagree in size"),
        ({"embedded": (1.0,), "embedded_order": 1}, "1 embedded weights given for 2 stages"),
        ({"embedded": (1.0, 0.0)}, "order 0"),
        *(({"order": order}, "an order is a whole number from 1 to 10") for order in (0, 16, 1.5, "2", None, True)),
        ({"a": ((0.0,), (1.0,))}, "2 rows of 1 numbers, 2 weights"),
        ({"a": None}, "not a number"),
        ({"a": (0.0, 1.0)}, "not a number"),
        ({"b": ("a", 0.5)}, "not a number"),
        ({"b": (0j, 1.0)}, "not a number"),
        ({"embedded": ("a", 0.0), "embedded_order": 1}, "not a number"),
        ({"a": ((0.0, 0.0), (1e308, 1e308)), "c": (0.0, 1e308)}, "differs from its c"),
        ({"b": (float("nan"), 0.5)}, "finite"),
        ({"a": ((0.0, 0.0), (float("nan"), 0.0))}, "finite"),
        ({"c": (0.0, float("inf"))}, "finite"),
        ({"embedded": (float("nan"), 0.0), "embedded_order": 1}, "finite"),
    ],
)
def test_bad_sizes_and_numbers_are_one_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        dataclasses.replace(heun, **change)
    assert str(caught.value).startswith("tableau heun: ")
    assert "\n" not in str(caught.value)


def test_kinds() -> None:
    kinds = {name: method.kind for name, method in TABLEAUS.items()}
    implicit = {"gauss2", "gauss3", "radau2", "radau3", "lobatto3c"}
    assert {name for name, kind in kinds.items() if kind == "fully implicit"} == implicit
    assert {name for name, kind in kinds.items() if kind == "diagonally implicit"} == {"gauss1"}


def test_last_stage() -> None:
    assert {n for n, m in TABLEAUS.items() if m.stiffly_accurate} == {
        *("dopri5", "tsit5", "radau2", "radau3", "lobatto3c")
    }
    assert {n for n, m in TABLEAUS.items() if m.first_same_as_last} == {"dopri5", "tsit5"}
    trapezium = Tableau("trapezium", 2, a=((0.0, 0.0), (0.5, 0.5)), b=(0.5, 0.5), c=(0.0, 1.0))
    assert trapezium.first_same_as_last
    assert trapezium.kind == "diagonally implicit"


def test_a_wrong_claim_is_refused_at_the_first_order_that_fails() -> None:
    """It took 46 seconds to refuse order 16, over hundreds of thousands of trees."""
    with pytest.raises(InputError, match=r"claimed to be of order 10, .* at order 2"):
        dataclasses.replace(euler, order=10)


def test_what_overflows_does_not_pass() -> None:
    """Infinity less infinity is NaN, which is not larger than the tolerance."""
    assert order_defect(((1e200, 0.0), (1e200, 0.0)), (1.0, -1.0), 3) == float("inf")


def test_coefficients_may_be_any_numbers() -> None:
    given = Tableau("heun", 2, a=[[0, 0], [Fraction(1), 0]], b=np.array([0.5, 0.5]), c=[0, 1])  # type: ignore[arg-type]
    assert given == heun
    pair = dataclasses.replace(heun, embedded=[1, 0], embedded_order=1)  # type: ignore[arg-type]
    assert pair.embedded == (1.0, 0.0)
    assert hash(pair) == hash(dataclasses.replace(pair))


def test_adapts() -> None:
    assert {name for name, method in TABLEAUS.items() if method.adapts} == {"dopri5", "tsit5"}
    assert not dataclasses.replace(heun, embedded=heun.b, embedded_order=2).adapts  # its estimate would be zero


def test_is_a_value() -> None:
    assert dataclasses.replace(rk4) == rk4
    assert len({rk4, dataclasses.replace(rk4), euler}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        rk4.order = 5  # type: ignore[misc]
