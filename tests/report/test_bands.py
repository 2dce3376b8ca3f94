"""Curves over seeds: the mean within its band, a panel a family."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from outcome import outcome
from report.records import ERRORS, put_records
from rkcnn.record.tables import TABLES
from rkcnn.report.bands import HIGHEST, draw_bands
from rkcnn.report.view import view


def test_a_panel_a_family_with_every_row_in_it(tmp_path: Path) -> None:
    put_records(tmp_path)
    figure = draw_bands(view(TABLES["mnist"], tmp_path))
    assert figure
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["ResNet", "RKCNN-E", "RKCNN-I", "RKCNN-R"]
    for panel in figure.axes:
        assert len(panel.lines) == len(ERRORS)
    resnets = [line for line in figure.axes[0].lines if "ResNet" in str(line.get_label())]
    assert len({line.get_linestyle() for line in resnets}) == 2, "told apart without colour"
    assert [line.get_label() for line in resnets] == ["pre-act ResNet (bottleneck) (n=5)", "pre-act ResNet (n=5)"]


def test_the_line_is_the_mean_and_the_band_the_range(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-I-2@k=32": (0.0035, 0.0033, 0.0037)})
    figure = draw_bands(view(TABLES["mnist"], tmp_path))
    assert figure
    (panel,) = figure.axes
    assert np.asarray(panel.lines[0].get_xydata())[-1] == pytest.approx((3, 0.35))
    (band,) = panel.collections
    ends = band.get_paths()[0].vertices
    assert sorted({round(float(y), 9) for x, y in np.asarray(ends) if x == 3}) == pytest.approx([0.33, 0.37])
    assert panel.get_yscale() == "log"
    assert panel.get_ylim()[1] < 1.2 * HIGHEST * 0.31, "the first epoch's 10 % leaves the panel"


def test_runs_without_error_are_drawn_on_a_plain_scale(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.0002,)}, epochs=outcome((0.1, 0.0)).epochs)
    figure = draw_bands(view(TABLES["mnist"], tmp_path))
    assert figure
    assert figure.axes[0].get_yscale() == "linear"


def test_nothing_to_see_is_no_figure(tmp_path: Path) -> None:
    assert draw_bands(view(TABLES["mnist"], tmp_path)) is None
    put_records(tmp_path, {"ResNet@k=32": (0.3,)}, preset="smoke", epochs=outcome((0.3,)).epochs)
    assert draw_bands(view(TABLES["mnist"], tmp_path)) is None


def test_smoke_says_so(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3,)}, preset="smoke")
    figure = draw_bands(view(TABLES["mnist"], tmp_path))
    assert figure
    assert "SMOKE" in figure.get_suptitle()
