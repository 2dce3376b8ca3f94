"""Names on a scatter lie inside of it and over nothing."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from rkcnn.report.figures.labels import Line, Place, place_labels


def write(points: list[Place], names: list[str], lines: list[Line] | None = None) -> tuple[Axes, list[Annotation]]:
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(*zip(*points, strict=True), "o", markersize=7)
    axes.margins(0.12)
    return axes, place_labels(axes, points, names, ["black"] * len(names), lines or [])


def boxes(axes: Axes, texts: list[Annotation]) -> list[Bbox]:
    """Of the names alone, without their lines."""
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    return [Text.get_window_extent(text) for text in texts]


@pytest.mark.parametrize("seed", range(3))
def test_twenty_names_in_a_crowd(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = [(float(x), float(y)) for x, y in rng.normal(size=(20, 2))]
    axes, texts = write(points, [f"RKCNN-I-2@k={i}" for i in range(20)])
    found = boxes(axes, texts)
    assert not [pair for pair in combinations(found, 2) if Bbox.intersection(*pair) is not None]
    frame = axes.get_window_extent()
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in found)


def test_equal_points_get_names_beside_each_other() -> None:
    axes, texts = write([(1, 1), (1, 1), (2, 2)], ["one", "two", "three"])
    assert Bbox.intersection(*boxes(axes, texts[:2])) is None


def test_a_lonely_point_has_its_name_next_to_it_and_no_line() -> None:
    _, (text,) = write([(1, 1)], ["one"])
    assert text.arrow_patch is None
    assert text.get_text() == "one"


def test_names_keep_off_lines() -> None:
    points = [(1.0, 1.0), (2.0, 2.0)]
    axes, texts = write(points, ["one", "two"], [((0.9, 1.0), (2.1, 1.0))])
    level = axes.transData.transform((1, 1))[1]
    assert all(not box.y0 < level < box.y1 for box in boxes(axes, texts))


def test_a_dollar_stays_a_dollar() -> None:
    _, (text,) = write([(1, 1)], ["$x$"])
    assert not text.get_parse_math()
