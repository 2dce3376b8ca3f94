"""A Runge–Kutta method as data, and the order conditions that it must satisfy.

The conditions are indexed by rooted trees (Butcher 2008, section 31).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import inf, isfinite, isnan, prod
from typing import Literal

from rkcnn.error import InputError

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


def order_defect(a: Matrix, b: tuple[float, ...], nodes: int) -> float:
    """Return the largest |sum_i b_i Phi_i(t) - 1/gamma(t)| over all trees of that many nodes; NaN is infinite."""
    defects = (
        abs(sum(w * phi for w, phi in zip(b, elementary_weights(tree, a), strict=True)) - 1 / density(tree))
        for tree in rooted_trees(nodes)
    )
    return max(inf if isnan(defect) else defect for defect in defects)


TOLERANCE = 1e-13  # the published coefficients of tsit5 leave a defect of 1.0e-14
HIGHEST_ORDER = 10  # that is checked: it has 719 conditions, and the next one 1842


@dataclass(frozen=True)
class Tableau:
    """z_i = f(t + c_i h, y + h sum_j a_ij z_j),  y_next = y + h sum_i b_i z_i  (Eqs. 3 and 2 of the paper).

    Raises InputError unless c_i = sum_j a_ij and every order condition up to `order` holds in float64,
    for the embedded weights up to `embedded_order`.
    """

    name: str
    order: int
    a: Matrix
    b: tuple[float, ...]
    c: tuple[float, ...]
    embedded: tuple[float, ...] | None = None
    embedded_order: int = 0

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "a", tuple(tuple(map(float, row)) for row in self.a))
            object.__setattr__(self, "b", tuple(map(float, self.b)))
            object.__setattr__(self, "c", tuple(map(float, self.c)))
            object.__setattr__(self, "embedded", None if self.embedded is None else tuple(map(float, self.embedded)))
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise InputError(
                f"tableau {self.name}: a coefficient is not a number ({error}); a is a list of rows of numbers, and b, "
                "c and embedded are lists of numbers"
            ) from None
        s = len(self.b)
        widths = sorted({len(row) for row in self.a})
        if len(self.a) != s or widths != [s] or len(self.c) != s:
            raise InputError(
                f"tableau {self.name}: a, b and c disagree in size ({len(self.a)} rows of "
                f"{' and '.join(map(str, widths)) or 'no'} numbers, {s} weights, {len(self.c)} nodes); a is s x s, b "
                "and c of length s, for one stage or more"
            )
        if not all(map(isfinite, (*sum(self.a, ()), *self.b, *self.c, *(self.embedded or ())))):
            raise InputError(f"tableau {self.name}: every coefficient must be a finite number")
        rows = max(abs(sum(row) - node) for row, node in zip(self.a, self.c, strict=True))
        if not rows <= TOLERANCE:
            raise InputError(f"tableau {self.name}: a row of a differs from its c by {rows:.1e}; they must agree")
        self._check_order(self.b, self.order, "b")
        if self.embedded is not None:
            if len(self.embedded) != s:
                raise InputError(f"tableau {self.name}: {len(self.embedded)} embedded weights given for {s} stages")
            self._check_order(self.embedded, self.embedded_order, "the embedded weights")

    def _check_order(self, weights: tuple[float, ...], order: int, which: str) -> None:
        if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= HIGHEST_ORDER:
            raise InputError(
                f"tableau {self.name}: order {order!r} given for {which}; an order is a whole number from 1 to "
                f"{HIGHEST_ORDER}, the highest that is checked"
            )
        for nodes in range(1, order + 1):
            defect = order_defect(self.a, weights, nodes)
            if defect > TOLERANCE:
                raise InputError(
                    f"tableau {self.name}: {which} claimed to be of order {order}, "
                    f"but an order condition fails by {defect:.1e} at order {nodes}"
                )

    @property
    def stages(self) -> int:
        return len(self.b)

    @property
    def kind(self) -> Literal["explicit", "diagonally implicit", "fully implicit"]:
        if all(x == 0 for i, row in enumerate(self.a) for x in row[i:]):
            return "explicit"
        if all(x == 0 for i, row in enumerate(self.a) for x in row[i + 1 :]):
            return "diagonally implicit"
        return "fully implicit"

    @property
    def stiffly_accurate(self) -> bool:
        """The last stage is the new state: a_si = b_i."""
        return self.a[-1] == self.b

    @property
    def first_same_as_last(self) -> bool:
        """The last stage's slope is the next step's first; that needs an explicit first stage."""
        return self.stiffly_accurate and not any(self.a[0])

    @property
    def adapts(self) -> bool:
        """Its steps can follow an estimate of the error: it is explicit, with embedded weights that differ from b."""
        return self.kind == "explicit" and self.embedded not in (None, self.b)
