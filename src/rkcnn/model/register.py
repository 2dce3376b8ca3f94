"""Families of networks from outside the package."""

from __future__ import annotations

import re

from rkcnn.error import InputError
from rkcnn.model.families import FAMILIES, LOOKS, OPTIONS, Family, title_of
from rkcnn.model.look import choose_looks
from rkcnn.model.period import Period


def register(family: Family) -> None:
    """Make a family of networks of your own known by its name, in this process.

    `family` is a `rkcnn.model.families.Family` whose `period` is your class, a subclass of
    `rkcnn.model.period.Period`: `rkcnn.register(Family("Mine", about="half of a residual step", period=Mine))`. Then
    `Mine@k=32` is a name like any other. To register a family of yours again replaces it, as when a cell of a notebook
    runs twice. A run's record holds a hash of your class beside that of the package (docs/train.md).
    """
    if not isinstance(family, Family):
        raise InputError(f"{family!r} given; register takes a Family, as in Family('Mine', about='...', period=Mine)")
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
