"""Curves over seeds: the mean within its band, a panel for each family, and a zoom on the last epochs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outcome import outcome
from report.records import ERRORS, put_records, results_of
from rkcnn.record.tables import TABLES
from rkcnn.report.figures.bands import HIGHEST, LEGEND, draw_bands
from rkcnn.report.figures.style import caption_of

THREE = ("ResNet@k=32", "Identity@k=32", "RKCNN-R-2@k=32")
OTHERS = {"ResNet@k=32": (0.004,), "RKCNN-R-2@k=32": (0.004,)}


def course(errors: tuple[float, ...]) -> dict[str, Any]:
    """The fields of a record that has these errors by epoch."""
    made = outcome(errors)
    return {name: getattr(made, name) for name in ("epochs", "stretches", "error", "error_best")}


def test_a_panel_a_family_with_every_row_in_it(tmp_path: Path) -> None:
    put_records(tmp_path)
    figure = draw_bands(results_of(tmp_path))
    assert figure
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    assert list(filter(None, titles)) == ["ResNet", "RKCNN-E", "RKCNN-I", "RKCNN-R"]
    for panel in figure.axes:
        assert len(panel.lines) == len(ERRORS)
    resnets = [line for line in figure.axes[0].lines if "ResNet" in str(line.get_label())]
    assert len({line.get_linestyle() for line in resnets}) == 2, "told apart without colour"
    assert [line.get_label() for line in resnets] == ["pre-act ResNet (bottleneck) (n=5)", "pre-act ResNet (n=5)"]


def test_the_line_is_the_mean_and_the_band_the_range(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-I-2@k=32": (0.0035, 0.0033, 0.0037), **OTHERS})
    figure = draw_bands(results_of(tmp_path))
    assert figure
    panel = next(panel for panel in figure.axes if panel.get_title(loc="left") == "RKCNN-I")
    (line,) = (line for line in panel.lines if "RKCNN-I" in str(line.get_label()))
    assert np.asarray(line.get_xydata())[-1] == pytest.approx((160, 0.35))
    (band,) = panel.collections
    ends = band.get_paths()[0].vertices
    assert sorted({round(float(y), 9) for x, y in np.asarray(ends) if x == 160}) == pytest.approx([0.33, 0.37])
    assert panel.get_yscale() == "log"
    top, lowest = HIGHEST * 0.31, 0.31
    assert panel.get_ylim()[1] < 1.2 * top * (top / lowest) ** LEGEND, "the first epoch leaves the panel"


def test_runs_without_error_are_drawn_on_a_plain_scale(tmp_path: Path) -> None:
    put_records(tmp_path, dict.fromkeys(THREE, (0.0002,)), preset="fast", **course((*[0.1] * 19, 0.0)))
    figure = draw_bands(results_of(tmp_path))
    assert figure
    assert figure.axes[0].get_yscale() == "linear"


def test_nothing_to_see_is_no_figure(tmp_path: Path) -> None:
    assert draw_bands(results_of(tmp_path)) is None
    put_records(tmp_path, dict.fromkeys(THREE, (0.3,)), preset="smoke")  # one epoch
    assert draw_bands(results_of(tmp_path)) is None


def test_another_recipe_says_so(tmp_path: Path) -> None:
    put_records(tmp_path, dict.fromkeys(THREE, (0.3,)), preset="fast")
    figure = draw_bands(results_of(tmp_path))
    assert figure
    assert "FAST" in figure.get_suptitle()


def test_fewer_than_three_networks_are_no_figure(tmp_path: Path) -> None:
    put_records(tmp_path, OTHERS)
    assert draw_bands(results_of(tmp_path)) is None


def test_below_each_panel_its_last_epochs_on_a_linear_scale(tmp_path: Path) -> None:
    """Twenty epochs that fall to 0.5 %: the zoom shows the last four, and nothing but their range."""
    errors = (*(0.1 / (1 + i) for i in range(16)), 0.006, 0.0058, 0.0056, 0.005)
    put_records(tmp_path, dict.fromkeys(THREE, (0.005, 0.005)), preset="fast", **course(errors))
    figure = draw_bands(results_of(tmp_path))
    assert figure
    wholes = [panel for panel in figure.axes if panel.get_title(loc="left")]
    zooms = [panel for panel in figure.axes if not panel.get_title(loc="left")]
    assert (len(wholes), len(zooms)) == (3, 3)
    assert [str(panel.get_gid()) for panel in zooms] == [f"{panel.get_gid()}-zoom" for panel in wholes]
    for whole, zoom in zip(wholes, zooms, strict=True):
        assert whole.get_xlim() == (0.5, 20.5)
        assert zoom.get_xlim() == (16.5, 20.5)
        low, high = zoom.get_ylim()
        assert 0.4 < low < 0.5 < 0.6 < high < 0.7
        assert (whole.get_yscale(), zoom.get_yscale()) == ("log", "linear")
        assert len(zoom.lines) == len(whole.lines)
    assert "below each panel its last 4 epochs on a linear scale" in figure.get_suptitle()
    assert caption_of(figure).endswith("Below each panel are its last epochs on a linear scale.")


def test_the_grey_lines_are_explained(tmp_path: Path) -> None:
    put_records(tmp_path)
    figure = draw_bands(results_of(tmp_path))
    assert figure
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["mean of a network of another panel"]
    figure.draw_without_rendering()
    panels = [panel.get_tightbbox() for panel in figure.axes]
    assert figure._supxlabel is not None  # type: ignore[attr-defined]
    label = figure._supxlabel.get_window_extent()  # type: ignore[attr-defined]
    assert not any(box and box.overlaps(legend.get_window_extent()) for box in (*panels, label))
    assert "in grey" in caption_of(figure)


def test_of_one_family_nothing_is_grey(tmp_path: Path) -> None:
    put_records(tmp_path, dict.fromkeys(("RKCNN-R-2@k=20", "RKCNN-R-2@k=26", "RKCNN-R-2@k=32"), (0.004,)))
    figure = draw_bands(results_of(tmp_path))
    assert figure
    assert not figure.legends
    assert "grey" not in caption_of(figure)


def test_the_caption_of_three_epochs_speaks_of_no_zoom_and_no_band(tmp_path: Path) -> None:
    put_records(tmp_path, dict.fromkeys(THREE, (0.004,)))
    seen = results_of(tmp_path)
    rows = [
        replace(row, results=tuple(replace(run, epochs=run.epochs[-3:]) for run in row.results)) for row in seen.rows
    ]
    figure = draw_bands(replace(seen, rows=tuple(rows)))
    assert figure
    assert caption_of(figure) == "Error by epoch. The networks of other families are in grey."


def test_long_names_do_not_make_the_panels_narrower(tmp_path: Path) -> None:
    specs = [spec for spec in TABLES["norms"].specs if spec.startswith(("RKNN", "RKNet-rk4", "ODENet-ab", "RKCNN-R"))]
    put_records(tmp_path, dict.fromkeys(specs, (0.004, 0.005)), "norms", "fast")
    figure = draw_bands(results_of(tmp_path, "norms", "fast"))
    assert figure
    for _ in range(2):  # another drawing changes nothing, and warns of nothing
        figure.draw_without_rendering()
        assert all(panel.get_position().width > 0.22 for panel in figure.axes), (
            "a third of the figure, but for the labels"
        )
