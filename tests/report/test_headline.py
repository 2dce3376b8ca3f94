"""A title is never wider than its figure."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from rkcnn.report.headline import write_headline


@pytest.mark.parametrize("width", [2.4, 3.6, 6.4, 12.0])
def test_a_title_is_broken_to_fit_and_loses_no_word(width: float) -> None:
    figure = Figure(figsize=(width, 2))
    lines = ("cifar10: test error by epoch, mean and range over seeds", "FAST: 40 epochs; not the paper's recipe")
    write_headline(figure, *lines)
    (text,) = figure.texts
    assert " ".join(figure.get_suptitle().split()) == " ".join(lines)
    box = text.get_window_extent()
    assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
    assert lines[1][:5] in [line[:5] for line in figure.get_suptitle().splitlines()], "the second begins a line"


def test_what_fits_stays_on_one_line_and_nothing_is_no_line() -> None:
    figure = Figure(figsize=(6.4, 2))
    write_headline(figure, "mnist: error and parameters", "")
    assert figure.get_suptitle() == "mnist: error and parameters"
