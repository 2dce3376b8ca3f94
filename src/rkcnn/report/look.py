"""How a family looks in every figure: a colour, and a marker that tells it apart where colour can't."""

from __future__ import annotations

from rkcnn.model.families import LOOKS
from rkcnn.model.look import OTHER, Look


def look_of(family: str) -> Look:
    """Return the look of a family by its title, as `family_of` gives it."""
    return LOOKS.get(family, OTHER)
