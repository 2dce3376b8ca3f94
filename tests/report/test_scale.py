"""A logarithmic axis has a few plain numbers, whatever it spans."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from rkcnn.report.scale import scale_log


@pytest.mark.parametrize(
    "values", [(0.3, 0.5), (1.0, 1.9), (31, 78), (0.3, 9), (1, 400), (1, 1e6), (5,), (9.6, 10.4), (5.31, 5.33)]
)
def test_ticks_can_be_read(values: tuple[float, ...]) -> None:
    axes = Figure().subplots()
    axes.plot(values, values, ".")
    scale_log(axes, "y", values)
    low, high = axes.get_ylim()
    places = [float(place) for place in axes.get_yticks() if low <= place <= high]
    texts = axes.yaxis.get_major_formatter().format_ticks(places)
    assert axes.get_yscale() == "log"
    assert axes.get_xscale() == "linear"
    assert 3 <= len(set(texts)) == len(texts) <= 12
    assert all(float(text) > 0 for text in texts), "plain numbers, no powers of ten as mathematics"


def test_no_point_lies_far_beyond_the_last_number() -> None:
    """As FLOPs of the mnist table: 7.1 to 12.6 M ended at 10."""
    axes = Figure().subplots()
    axes.plot([7.1, 12.6], [1, 2], ".")
    scale_log(axes, "x", [7.1, 12.6])
    low, high = axes.get_xlim()
    assert max(place for place in axes.get_xticks() if low <= place <= high) == 12
