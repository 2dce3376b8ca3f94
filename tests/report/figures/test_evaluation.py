"""Figures of one evaluation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rkcnn.report.figures.evaluation import draw_confusion, draw_corruptions
from rkcnn.report.figures.style import save_figure


def test_counts_stand_in_their_cells_and_mistakes_alone_are_coloured() -> None:
    axes = draw_confusion([[8, 2, 0], [0, 5, 0], [1, 0, 3]], ["a", "b", "c"], "title").axes[0]
    assert {(*text.get_position(), text.get_text()) for text in axes.texts} == {
        (0, 0, "8"),
        (1, 0, "2"),
        (1, 1, "5"),
        (0, 2, "1"),
        (2, 2, "3"),
    }
    shown = axes.images[0].get_array()
    assert isinstance(shown, np.ma.MaskedArray)
    assert shown.mask.tolist() == np.eye(3, dtype=bool).tolist()
    assert shown[0, 1] == 20
    assert shown[2, 0] == 25
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["a", "b", "c"]


@pytest.mark.parametrize("number", [1, 2, 20, 21, 100])
def test_any_number_of_classes(tmp_path: Path, number: int) -> None:
    counts = np.full((number, number), 2)
    counts[0] = 0  # a class without images
    figure = draw_confusion(counts.tolist(), [f"a long $name$ {i}" for i in range(number)])
    axes = figure.axes[0]
    assert len(axes.get_xticklabels()) <= 50
    assert len(axes.texts) == ((number - 1) * number if number <= 20 else 0)
    for path in save_figure(figure, tmp_path / "confusion"):
        assert path.stat().st_size > 1000


def test_no_mistake_at_all() -> None:
    shown = draw_confusion([[3, 0], [0, 4]], ["a", "b"]).axes[0].images[0]
    assert shown.get_clim() == (0, 100)


def test_one_mistake_is_dark_among_many_images_alone() -> None:
    few = draw_confusion([[11, 1], [0, 12]], ["a", "b"]).axes[0].images[0]
    assert few.get_clim() == pytest.approx((0, 100 * 5 / 12))
    many = draw_confusion([[980, 20], [0, 1000]], ["a", "b"]).axes[0].images[0]
    assert many.get_clim() == (0, 2)


def test_each_kind_is_a_line_from_the_clean_error_on() -> None:
    figure = draw_corruptions(0.02, {"noise": (0.03, 0.05), "blur": (0.02, 0.5)}, "a $name")
    (axes,) = figure.axes
    clean, noise, blur = axes.lines
    np.testing.assert_allclose(np.asarray(noise.get_ydata()), [2, 3, 5])
    np.testing.assert_allclose(np.asarray(blur.get_ydata()), [2, 2, 50])
    assert clean.get_label() == "clean: 2.00 %"
    assert noise.get_marker() != blur.get_marker()
    assert axes.get_title() == "a $name"
