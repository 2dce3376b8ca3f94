"""A Runge–Kutta method as data."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from rkcnn.error import InputError
from rkcnn.solvers.trees import Matrix, order_defect

TOLERANCE = 1e-13  # the published coefficients of tsit5 leave a defect of 1.0e-14


@dataclass(frozen=True)
class Tableau:
    """z_i = f(t + c_i h, y + h sum_j a_ij z_j),  y_next = y + h sum_i b_i z_i  (Eqs. 3 and 4 of the paper).

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
        object.__setattr__(self, "a", tuple(tuple(map(float, row)) for row in self.a))
        object.__setattr__(self, "b", tuple(map(float, self.b)))
        object.__setattr__(self, "c", tuple(map(float, self.c)))
        s = len(self.b)
        if len(self.a) != s or any(len(row) != s for row in self.a) or len(self.c) != s or s == 0:
            raise InputError(
                f"tableau {self.name}: a, b and c disagree in size "
                f"({len(self.a)} rows, {s} weights, {len(self.c)} nodes); a is s x s, b and c of length s"
            )
        if not all(map(isfinite, (*sum(self.a, ()), *self.b, *self.c, *(self.embedded or ())))):
            raise InputError(f"tableau {self.name}: every coefficient must be a finite number")
        rows = max(abs(sum(row) - node) for row, node in zip(self.a, self.c, strict=True))
        if rows > TOLERANCE:
            raise InputError(f"tableau {self.name}: a row of a differs from its c by {rows:.1e}; they must agree")
        self._check_order(self.b, self.order, "b")
        if self.embedded is not None:
            if len(self.embedded) != s:
                raise InputError(f"tableau {self.name}: {len(self.embedded)} embedded weights given for {s} stages")
            self._check_order(self.embedded, self.embedded_order, "the embedded weights")

    def _check_order(self, weights: tuple[float, ...], order: int, which: str) -> None:
        if order < 1:
            raise InputError(f"tableau {self.name}: order {order} given for {which}; an order is 1 or more")
        defect = order_defect(self.a, weights, order)
        if defect > TOLERANCE:
            raise InputError(
                f"tableau {self.name}: {which} claimed to be of order {order}, "
                f"but an order condition fails by {defect:.1e}"
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
