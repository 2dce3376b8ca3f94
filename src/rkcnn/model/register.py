"""Make a family of networks, or a Runge–Kutta method, from outside the package known by its name."""

from __future__ import annotations

import re

from rkcnn.error import InputError
from rkcnn.model.drawing import choose_looks
from rkcnn.model.families import FAMILIES, LOOKS, OPTIONS, Family, add_variants, title_of
from rkcnn.model.period import Period
from rkcnn.solvers.methods import BUILT_IN, add_method
from rkcnn.solvers.tableau import Tableau


def register(new: Family | Tableau) -> None:
    """Make a family of networks, or a Runge–Kutta method, of your own known by its name, in this process.

    A family is a `rkcnn.model.families.Family` whose `period` is your class, a subclass of
    `rkcnn.model.period.Period`: `rkcnn.register(Family("Mine", about="half of a residual step", period=Mine))`. Then
    `Mine@k=32` is a name like any other.

    A method is a `rkcnn.solvers.tableau.Tableau`: `rkcnn.register(Tableau("ralston", order=2, a=..., b=..., c=...))`.
    Then `RKNet-ralston@k=32` is a name like any other, as are those of RKNN, SONODE and ANODE, and `solve` and
    `evaluate` take it as `method="ralston"`.

    To register yours again replaces it, as when a cell of a notebook runs twice. A run's record holds a hash of your
    class, or of your method's coefficients, beside that of the package (docs/train.md).
    """
    if isinstance(new, Family):
        _register_family(new)
    elif isinstance(new, Tableau):
        _register_method(new)
    else:
        raise InputError(
            f"{new!r} given; register takes a Family, as in Family('Mine', about='...', period=Mine), or a Tableau"
        )


def _register_method(method: Tableau) -> None:
    if not isinstance(method.name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", method.name):
        raise InputError(
            f"the tableau's name is {method.name!r}; it is made of small letters, digits and _, and starts with a "
            "letter"
        )
    if method.name in BUILT_IN:
        raise InputError(f"rkcnn has a method {method.name} of its own; give yours another name")
    add_method(method)
    add_variants(method.name)


def _register_family(family: Family) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", family.name):
        raise InputError(f"the family's name is {family.name!r}; it is made of letters and digits and starts with one")
    if not (isinstance(family.period, type) and issubclass(family.period, Period)):
        raise InputError(
            f"{family.name}: `period={family.period!r}` given; it must be a class that inherits from "
            "rkcnn.model.period.Period"
        )
    taken = {name.lower(): name for name, known in FAMILIES.items() if isinstance(known.period, str)}
    if family.name.lower() in taken:
        raise InputError(f"rkcnn has a family {taken[family.name.lower()]} of its own; give yours another name")
    unknown = sorted({name for each in family.variants.values() for name in each.options} - set(OPTIONS))
    if unknown:
        raise InputError(f"{family.name}: no option {unknown[0]!r}; options of names are {', '.join(OPTIONS)}")
    for known in [name for name in FAMILIES if name.lower() == family.name.lower()]:
        del FAMILIES[known]
    FAMILIES[family.name] = family
    looks = {title_of(f"{family.name}-{name}"): each.look or family.look for name, each in family.variants.items()}
    LOOKS.update(choose_looks({**LOOKS, **looks}))
