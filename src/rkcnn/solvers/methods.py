"""The named methods: each is a tableau, which checks its own order when it is made."""

from __future__ import annotations

from math import sqrt

from rkcnn.solvers.tableau import Tableau


def _explicit(*rows: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """Fill up rows below the diagonal with zeros."""
    return tuple(row + (0.0,) * (len(rows) - len(row)) for row in rows)


euler = Tableau("euler", 1, a=((0.0,),), b=(1.0,), c=(0.0,))
midpoint = Tableau("midpoint", 2, a=_explicit((), (1 / 2,)), b=(0.0, 1.0), c=(0.0, 1 / 2))
heun = Tableau("heun", 2, a=_explicit((), (1.0,)), b=(1 / 2, 1 / 2), c=(0.0, 1.0))
rk4 = Tableau(
    "rk4",
    4,
    a=_explicit((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
    c=(0.0, 1 / 2, 1 / 2, 1.0),
)
rk4_38 = Tableau(  # Kutta's 3/8 rule: what torchdiffeq calls rk4, the paper's 4th-order ERK
    "rk4_38",
    4,
    a=_explicit((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0)),
    b=(1 / 8, 3 / 8, 3 / 8, 1 / 8),
    c=(0.0, 1 / 3, 2 / 3, 1.0),
)
dopri5 = Tableau(  # Dormand & Prince 1980
    "dopri5",
    5,
    a=_explicit(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    b=(35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    embedded=(5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40),
    embedded_order=4,
)
_tsit5_b = (
    0.09646076681806523,
    0.01,
    0.4798896504144996,
    1.379008574103742,
    -3.290069515436081,
    2.324710524099774,
    0.0,
)
_tsit5_error = (
    -0.00178001105222577714,
    -0.0008164344596567469,
    0.007880878010261995,
    -0.1447110071732629,
    0.5823571654525552,
    -0.45808210592918697,
    1 / 66,
)
tsit5 = Tableau(  # Tsitouras 2011
    "tsit5",
    5,
    a=_explicit(
        (),
        (0.161,),
        (-0.008480655492356989, 0.335480655492357),
        (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
        (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
        (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383),
        _tsit5_b[:-1],
    ),
    b=_tsit5_b,
    c=(0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0),
    embedded=tuple(b - e for b, e in zip(_tsit5_b, _tsit5_error, strict=True)),
    embedded_order=4,
)

gauss1 = Tableau("gauss1", 2, a=((1 / 2,),), b=(1.0,), c=(1 / 2,))  # the implicit midpoint rule
_r3 = sqrt(3)
gauss2 = Tableau(
    "gauss2",
    4,
    a=((1 / 4, 1 / 4 - _r3 / 6), (1 / 4 + _r3 / 6, 1 / 4)),
    b=(1 / 2, 1 / 2),
    c=(1 / 2 - _r3 / 6, 1 / 2 + _r3 / 6),
)
_r15 = sqrt(15)
gauss3 = Tableau(
    "gauss3",
    6,
    a=(
        (5 / 36, 2 / 9 - _r15 / 15, 5 / 36 - _r15 / 30),
        (5 / 36 + _r15 / 24, 2 / 9, 5 / 36 - _r15 / 24),
        (5 / 36 + _r15 / 30, 2 / 9 + _r15 / 15, 5 / 36),
    ),
    b=(5 / 18, 4 / 9, 5 / 18),
    c=(1 / 2 - _r15 / 10, 1 / 2, 1 / 2 + _r15 / 10),
)
radau2 = Tableau("radau2", 3, a=((5 / 12, -1 / 12), (3 / 4, 1 / 4)), b=(3 / 4, 1 / 4), c=(1 / 3, 1.0))
_r6 = sqrt(6)
_radau3_b = ((16 - _r6) / 36, (16 + _r6) / 36, 1 / 9)
radau3 = Tableau(
    "radau3",
    5,
    a=(
        ((88 - 7 * _r6) / 360, (296 - 169 * _r6) / 1800, (-2 + 3 * _r6) / 225),
        ((296 + 169 * _r6) / 1800, (88 + 7 * _r6) / 360, (-2 - 3 * _r6) / 225),
        _radau3_b,
    ),
    b=_radau3_b,
    c=((4 - _r6) / 10, (4 + _r6) / 10, 1.0),
)
lobatto3c = Tableau(
    "lobatto3c",
    4,
    a=((1 / 6, -1 / 3, 1 / 6), (1 / 6, 5 / 12, -1 / 12), (1 / 6, 2 / 3, 1 / 6)),
    b=(1 / 6, 2 / 3, 1 / 6),
    c=(0.0, 1 / 2, 1.0),
)

TABLEAUS: dict[str, Tableau] = {}
EMBEDDED: list[str] = []  # methods that can choose their steps by a tolerance
IMPLICIT: list[str] = []
ADAMS = ("ab", "abm")
METHOD_NAMES: list[str] = []  # all methods


def add_method(method: Tableau) -> None:
    """Make a Runge–Kutta method known by its name, or replace the one of that name."""
    for names in (EMBEDDED, IMPLICIT, METHOD_NAMES):
        if method.name in names:
            names.remove(method.name)
    TABLEAUS[method.name] = method
    METHOD_NAMES.append(method.name)
    if method.embedded is not None:
        EMBEDDED.append(method.name)
    if method.kind != "explicit":
        IMPLICIT.append(method.name)


for _method in (euler, midpoint, heun, rk4, rk4_38, dopri5, tsit5, gauss1, gauss2, gauss3, radau2, radau3, lobatto3c):
    add_method(_method)
METHOD_NAMES.extend(ADAMS)
BUILT_IN = frozenset(METHOD_NAMES)

BASHFORTH = {3: (23 / 12, -16 / 12, 5 / 12), 4: (55 / 24, -59 / 24, 37 / 24, -9 / 24)}
"""Adams–Bashforth: the weights of the slopes, newest first, by the number of slopes."""
MOULTON = (9 / 24, 19 / 24, -5 / 24, 1 / 24)
"""Adams–Moulton of order 4: the new slope, then three old ones."""
ADAMS_STARTERS = 2  # steps of the 3/8 rule; the third step has three slopes to use
