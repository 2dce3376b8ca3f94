"""Every figure of a table: each once, all of them where there is enough to draw."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.text import Text

from report.records import ERRORS, put_records, report_of
from rkcnn.record.tables import TABLES
from rkcnn.report.figures import FIGURES
from rkcnn.report.figures.style import render


def test_equal_records_give_equal_figures_and_all_of_them(tmp_path: Path) -> None:
    put_records(tmp_path, flops=8_000_000)
    one, two = (report_of(tmp_path).figures for _ in range(2))
    assert list(one) == list(FIGURES) == ["frontier-params", "frontier-flops", "frontier-seconds", "forest", "bands"]
    for stem in ("frontier-params", "forest"):
        assert render(one[stem], "svg") == render(two[stem], "svg")


@pytest.mark.parametrize(
    ("table", "preset", "specs"),
    [
        ("cifar10", "fast", [f"RKCNN-{kind}-2_2_2@k=120" for kind in "EIR"]),
        ("mnist", "paper", list(ERRORS)),
        ("norms", "fast", ["RKCNN-R-2@k=32,norm=bn", "RKCNN-R-2@k=32,norm=gn", "ResNet@k=32", "ResNet@k=32,norm=bn"]),
        ("scaling", "fast", list(TABLES["scaling"].specs)),
    ],
)
def test_every_title_lies_inside_its_figure(tmp_path: Path, table: str, preset: str, specs: list[str]) -> None:
    put_records(tmp_path, dict.fromkeys(specs, (0.05, 0.06)), table, preset, flops=8_000_000)
    figures = report_of(tmp_path, table).figures
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
    assert report_of(tmp_path).figures == {}


def test_a_table_of_two_networks_draws_no_figure(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005), "RKCNN-R-2@k=32": (0.003, 0.004)}, flops=8_000_000)
    assert report_of(tmp_path).figures == {}
    put_records(tmp_path, {"Identity@k=32": (0.006, 0.007)}, flops=8_000_000)
    assert list(report_of(tmp_path).figures) == list(FIGURES)
