"""The figure of errors under corruptions."""

from __future__ import annotations

import numpy as np

from rkcnn.report.figures.corruptions import draw_corruptions


def test_each_kind_is_a_line_from_the_clean_error_on() -> None:
    figure = draw_corruptions(0.02, {"noise": (0.03, 0.05), "blur": (0.02, 0.5)}, "a $name")
    (axes,) = figure.axes
    clean, noise, blur = axes.lines
    np.testing.assert_allclose(np.asarray(noise.get_ydata()), [2, 3, 5])
    np.testing.assert_allclose(np.asarray(blur.get_ydata()), [2, 2, 50])
    assert clean.get_label() == "clean: 2.00 %"
    assert noise.get_marker() != blur.get_marker()
    assert axes.get_title() == "a $name"
