"""Families can be told apart with colour and without; titles fit, and logarithmic axes have plain numbers."""

from __future__ import annotations

from itertools import combinations

import pytest
from matplotlib.figure import Figure

from rkcnn.record.tables import TABLES
from rkcnn.report.figures.style import caption_of, look_of, scale_log, write_caption, write_title
from rkcnn.report.paper import family_of

FAMILIES = sorted({family_of(spec) for table in TABLES.values() for spec in table.specs})


def test_no_two_families_share_a_marker() -> None:
    for one, two in combinations(FAMILIES, 2):
        assert look_of(one).marker != look_of(two).marker, (one, two)


def test_no_two_families_share_a_colour() -> None:
    assert len({look_of(family).colour for family in FAMILIES}) == len(FAMILIES)


def test_a_family_nobody_thought_of_has_a_look() -> None:
    assert look_of("Mine").marker not in {look_of(family).marker for family in FAMILIES}


@pytest.mark.parametrize("width", [2.4, 3.6, 6.4, 12.0])
def test_a_title_is_broken_to_fit_and_loses_no_word(width: float) -> None:
    figure = Figure(figsize=(width, 2))
    lines = ("cifar10: test error by epoch, mean and range over seeds", "FAST: 40 epochs; not the paper's recipe")
    write_title(figure, *lines)
    (text,) = figure.texts
    assert " ".join(figure.get_suptitle().split()) == " ".join(lines)
    box = text.get_window_extent()
    assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
    assert lines[1][:5] in [line[:5] for line in figure.get_suptitle().splitlines()], "the second begins a line"


def test_what_fits_stays_on_one_line_and_nothing_is_no_line() -> None:
    figure = Figure(figsize=(6.4, 2))
    write_title(figure, "mnist: error and parameters", "")
    assert figure.get_suptitle() == "mnist: error and parameters"


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


def test_a_caption_says_what_holds() -> None:
    figure = Figure()
    write_caption(figure, ("Errors.", True), ("A pale point is alone.", False), ("A bar is a deviation.", True))
    assert caption_of(figure) == "Errors. A bar is a deviation."
