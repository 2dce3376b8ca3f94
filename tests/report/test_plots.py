"""Every figure of a view, as files."""

from __future__ import annotations

from pathlib import Path

from report.records import put_records
from rkcnn.record.table import TABLES
from rkcnn.report.forest import draw_forest
from rkcnn.report.frontier import draw_frontier
from rkcnn.report.picture import render
from rkcnn.report.plots import draw_plots
from rkcnn.report.view import view


def test_equal_records_give_equal_figures_and_all_of_them(tmp_path: Path) -> None:
    put_records(tmp_path, flops=8_000_000)
    seen = view(TABLES["mnist"], tmp_path)
    figures = draw_plots(seen)
    assert list(figures) == ["frontier-params", "frontier-flops", "frontier-seconds", "forest", "bands"]
    again = {"frontier-params": draw_frontier(seen, "params"), "forest": draw_forest(seen)}
    for stem, figure in again.items():
        assert figure
        assert render(figures[stem], "svg") == render(figure, "svg")


def test_no_results_no_figures(tmp_path: Path) -> None:
    assert draw_plots(view(TABLES["mnist"], tmp_path)) == {}
