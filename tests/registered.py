"""Tests that register families or methods leave those of the package alone behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from rkcnn.model.families import FAMILIES, LOOKS, Variant
from rkcnn.solvers.methods import BUILT_IN, EMBEDDED, IMPLICIT, METHOD_NAMES, TABLEAUS

METHOD_FAMILIES = ("RKNN", "RKNet", "SONODE", "ANODE")


def variants_of(family: str) -> dict[str, Variant]:
    """The variants of a family, which may be changed."""
    return cast(dict[str, Variant], FAMILIES[family].variants)


@contextmanager
def forgotten() -> Iterator[None]:
    """Forget every family and method that is registered here."""
    families, looks = dict(FAMILIES), dict(LOOKS)
    try:
        yield
    finally:
        FAMILIES.clear()
        FAMILIES.update(families)
        LOOKS.clear()
        LOOKS.update(looks)
        for name in set(METHOD_NAMES) - BUILT_IN:
            del TABLEAUS[name]
            for names in (METHOD_NAMES, EMBEDDED, IMPLICIT):
                names[:] = [each for each in names if each != name]
            for family in METHOD_FAMILIES:
                variants_of(family).pop(name, None)
