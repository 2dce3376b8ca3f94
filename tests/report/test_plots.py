"""Every figure of a view, as files."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.text import Text

from report.records import ERRORS, put_records
from rkcnn.record.tables import TABLES
from rkcnn.report.forest import draw_forest
from rkcnn.report.frontier import draw_frontier
from rkcnn.report.picture import render
from rkcnn.report.plots import STEMS, draw_plots
from rkcnn.report.view import view


def test_equal_records_give_equal_figures_and_all_of_them(tmp_path: Path) -> None:
    put_records(tmp_path, flops=8_000_000)
    seen = view(TABLES["mnist"], tmp_path)
    figures = draw_plots(seen)
    assert list(figures) == list(STEMS) == ["frontier-params", "frontier-flops", "frontier-seconds", "forest", "bands"]
    again = {"frontier-params": draw_frontier(seen, "params"), "forest": draw_forest(seen)}
    for stem, figure in again.items():
        assert figure
        assert render(figures[stem], "svg") == render(figure, "svg")


@pytest.mark.parametrize(
    ("table", "preset", "specs"),
    [
        ("cifar10", "fast", ["RKCNN-I-2_2_2@k=120"]),
        ("mnist", "paper", list(ERRORS)),
        ("norms", "fast", ["RKCNN-R-2@k=32,norm=bn", "RKCNN-R-2@k=32,norm=gn", "ResNet@k=32", "ResNet@k=32,norm=bn"]),
        ("scaling", "fast", list(TABLES["scaling"].specs)),
    ],
)
def test_every_title_lies_inside_its_figure(tmp_path: Path, table: str, preset: str, specs: list[str]) -> None:
    put_records(tmp_path, dict.fromkeys(specs, (0.05, 0.06)), table, preset, flops=8_000_000)
    figures = draw_plots(view(TABLES[table], tmp_path))
    assert figures
    for stem, figure in figures.items():
        figure.draw_without_rendering()
        titles = [axes.title for axes in figure.axes] + [axes._left_title for axes in figure.axes]  # type: ignore[attr-defined]
        for text in filter(Text.get_text, [*figure.texts, *titles]):
            box = text.get_window_extent()
            assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, (stem, text.get_text())
            assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1, (stem, text.get_text())
        assert (preset == "paper") == ("FAST: " not in figure.get_suptitle())


def test_no_results_no_figures(tmp_path: Path) -> None:
    assert draw_plots(view(TABLES["mnist"], tmp_path)) == {}
