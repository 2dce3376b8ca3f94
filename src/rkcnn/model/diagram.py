"""One time-step as a diagram: a lane for each state, a column for each computation, a dot where it reads a state."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True)
class Column:
    """A computation: its label, the lanes it reads (each with a weight to print, or none), and the lane it starts."""

    label: str
    reads: dict[str, str]
    writes: str


@dataclass
class Diagram:
    """Time runs from left to right; `phases` name groups of columns, and the last column makes the next state, y'."""

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
