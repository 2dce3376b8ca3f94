"""How networks are drawn: one time-step as a diagram, and a colour and a marker in figures. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple
from zlib import crc32


@dataclass(frozen=True)
class Column:
    """A computation: its label, the lanes it reads (each with a weight to print, or none), and the lane it starts."""

    label: str
    reads: dict[str, str]
    writes: str


@dataclass
class Diagram:
    """Columns in the order of computation; `phases` name groups of them, and the last makes the next state, y'."""

    title: str
    lanes: list[str]
    columns: list[Column] = field(default_factory=list)
    phases: list[tuple[str, int, int]] = field(default_factory=list)  # title, first and last column
    note: str = ""

    def add(self, label: str, reads: dict[str, str], writes: str) -> None:
        """Add a computation: `reads` maps lanes to the weights printed beside their dots, `writes` is a lane."""
        self.columns.append(Column(label, reads, writes))
        if writes not in self.lanes:
            self.lanes.append(writes)

    def phase(self, title: str, count: int) -> None:
        """Name the last `count` columns."""
        self.phases.append((title, len(self.columns) - count, len(self.columns) - 1))


def fraction(x: float) -> str:
    """Write a coefficient as a short fraction where it is one, else with three digits."""
    near = Fraction(x).limit_denominator(400)
    if abs(float(near) - x) < 1e-12:
        return str(near)
    return f"{x:.3g}"


# Okabe and Ito's colours: colour-blind readers can tell them apart, and in grey print their lightness does.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
SKY, AMBER, PINK, BLACK = "#56B4E9", "#E69F00", "#CC79A7", "#000000"
# Four more, darker or duller than those, since the paper compares twelve families.
WINE, PURPLE, OLIVE, BROWN = "#882255", "#6A3D9A", "#999933", "#8C510A"

COLOURS = (BLUE, ORANGE, GREEN, AMBER, PINK, SKY, BLACK)
MARKERS = tuple("dosD^v<>PXph")  # of Matplotlib, those first that no entry has chosen


class Look(NamedTuple):
    """A colour, one of Matplotlib's markers, and its size in points."""

    colour: str
    marker: str
    size: float = 7.5


OTHER = Look(GREY, "H", 8)
"""The look of families for which no other look is left."""
UNKNOWN_FAMILY_LOOKS = tuple(Look(colour, marker, 8) for marker in "H8" for colour in COLOURS)
"""The looks of families that this version of the package doesn't know; those that it knows have other markers."""


def look_of_unknown_family(title: str) -> Look:
    """Return the look of a family that this package doesn't know: by its name alone, so that it is always the same."""
    return UNKNOWN_FAMILY_LOOKS[crc32(title.encode()) % len(UNKNOWN_FAMILY_LOOKS)]


def choose_looks(chosen: dict[str, Look | None]) -> dict[str, Look]:
    """Return a look for every title: the chosen one, or else a pair of colour and marker that is still free."""
    taken = {look[:2] for look in chosen.values() if look is not None}
    free: Iterable[Look] = (Look(colour, marker) for marker in MARKERS for colour in COLOURS)
    unused = (look for look in free if look[:2] not in taken)
    return {title: look or next(unused, OTHER) for title, look in chosen.items()}
