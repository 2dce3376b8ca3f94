"""Rooted trees and the order conditions that they index (Butcher 2008, section 31)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod

Tree = tuple["Tree", ...]
"""A rooted tree is the sorted tuple of the trees that hang from its root; the single node is ()."""

Matrix = tuple[tuple[float, ...], ...]


@cache
def rooted_trees(nodes: int) -> tuple[Tree, ...]:
    """Return all rooted trees with that many nodes: 1, 1, 2, 4, 9, 20, 48, ..."""
    return tuple(dict.fromkeys(tuple(sorted(forest)) for forest in _forests(nodes - 1, nodes - 1)))


def _forests(nodes: int, largest: int) -> Iterator[tuple[Tree, ...]]:
    if nodes == 0:
        yield ()
    for size in range(min(nodes, largest), 0, -1):
        for tree in rooted_trees(size):
            for rest in _forests(nodes - size, size):
                yield (tree, *rest)


def size(tree: Tree) -> int:
    """Return the number of nodes."""
    return 1 + sum(map(size, tree))


def density(tree: Tree) -> int:
    """Return gamma(t): the size of the tree times the densities of its branches."""
    return size(tree) * prod(map(density, tree))


def elementary_weights(tree: Tree, a: Matrix) -> list[float]:
    """Return Phi_i(t) = prod over branches u of sum_j a_ij Phi_j(u) for each stage i."""
    branches = [elementary_weights(branch, a) for branch in tree]
    return [prod(sum(x * w for x, w in zip(row, weights, strict=True)) for weights in branches) for row in a]


def order_defect(a: Matrix, b: tuple[float, ...], order: int) -> float:
    """Return the largest |sum_i b_i Phi_i(t) - 1/gamma(t)| over all trees of at most `order` nodes."""
    return max(
        abs(sum(w * phi for w, phi in zip(b, elementary_weights(tree, a), strict=True)) - 1 / density(tree))
        for nodes in range(1, order + 1)
        for tree in rooted_trees(nodes)
    )
