"""Logarithmic axes whose numbers can be read, also over less than a decade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TICKS = ((3, (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)), (10, (1, 2, 3, 5, 7)), (500, (1, 2, 5)))


def scale_log(axes: Axes, which: Literal["x", "y"], values: Sequence[float]) -> None:
    """Logarithmic, with ticks as close as the span of the values asks for."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    span = max(values) / min(values)
    ticks = next((ticks for most, ticks in _TICKS if span < most), (1,))
    axes.set(**{f"{which}scale": "log"})
    if span == 1:
        axes.set(**{f"{which}lim": (values[0] / 1.5, values[0] * 1.5)})  # matplotlib would take two decades
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(MaxNLocator(6) if span < 1.5 else LogLocator(10, ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
