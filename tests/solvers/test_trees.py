"""Rooted trees against the two countings of labelled trees that every textbook has."""

from __future__ import annotations

from collections import Counter
from math import factorial, prod

import pytest

from rkcnn.solvers.trees import Tree, density, elementary_weights, order_defect, rooted_trees, size

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
