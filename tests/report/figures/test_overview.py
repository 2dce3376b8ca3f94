"""Every run of several data sets in one figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from measured_norms import put_measured
from report.records import ERRORS, put_records, results_of
from rkcnn.report.figures.overview import EACH, Panel, draw_overview

NAMES = {"ResNet": "ResNet@k=32", "RKCNN-E": "RKCNN-E-2@k=32", "RKCNN-I": "RKCNN-I-2@k=32", "RKCNN-R": "RKCNN-R-2@k=32"}


def panel(folder: Path, preset: str = "paper", title: str = "MNIST") -> Panel:
    results = results_of(folder, preset=preset)
    rows = {row.network: row for row in results.rows if row.results or row.diverged}
    return Panel(title, results, tuple((name, rows.get(spec)) for name, spec in NAMES.items()))


def points(axes: Axes, marker: str) -> list[list[float]]:
    """Where the markers of each line stand; the legend's have none."""
    lines = [line for line in axes.lines if line.get_marker() == marker]
    return [np.asarray(line.get_xdata()).tolist() for line in lines if len(np.asarray(line.get_xdata()))]


def drawn(panels: list[Panel]) -> Figure:
    figure = draw_overview(panels)
    assert figure
    return figure


def test_every_run_and_the_means(tmp_path: Path) -> None:
    put_records(tmp_path)
    (axes,) = drawn([panel(tmp_path)]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == list(NAMES)
    errors = [[100 * error for error in ERRORS[spec]] for spec in NAMES.values()]
    assert points(axes, "o") == [pytest.approx(values) for values in errors]
    assert points(axes, "|") == [pytest.approx([sum(values) / len(values)]) for values in errors]
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == "test error, %\npaper-mnist, 160 epochs"


def test_the_first_line_is_on_top_and_seeds_of_one_error_are_apart(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "ResNet@k=32": (0.004, 0.004, 0.004)})
    (axes,) = drawn([panel(tmp_path)]).axes
    low, high = axes.get_ylim()
    assert low > high
    (first, *_) = (line for line in axes.lines if line.get_marker() == "o")
    assert len(set(np.asarray(first.get_ydata()).tolist())) == 3


def test_panels_share_lines_and_say_what_was_not_run(tmp_path: Path) -> None:
    put_records(tmp_path / "paper")
    put_records(tmp_path / "fast", {"ResNet@k=32": (0.005, 0.006)}, preset="fast")
    both = drawn([panel(tmp_path / "fast", "fast", "fast"), panel(tmp_path / "paper")])
    assert [label.get_text() for label in both.axes[0].get_yticklabels()] == list(NAMES), "in their own order"
    one, two = drawn([panel(tmp_path / "paper"), panel(tmp_path / "fast", "fast", "fast")]).axes
    assert [text.get_text() for text in one.texts] == []
    assert [text.get_text() for text in two.texts] == ["not run yet"] * 3


def test_of_a_network_that_lost_runs_it_is_said(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "RKCNN-E-2@k=32": (0.004, None)})
    (axes,) = drawn([panel(tmp_path)]).axes
    assert "RKCNN-E" in [label.get_text() for label in axes.get_yticklabels()]
    assert [text.get_text() for text in axes.texts] == ["1 of 2 runs diverged"]
    assert len(points(axes, "o")) == 3


def test_an_error_of_zero_can_be_drawn(tmp_path: Path) -> None:
    put_records(tmp_path)
    found = panel(tmp_path)
    (name, row), *others = found.rows
    assert row
    perfect = replace(row, results=tuple(replace(result, error=0.0) for result in row.results))
    (axes,) = drawn([found._replace(rows=((name, perfect), *others))]).axes
    assert axes.get_xscale() == "linear"


def test_too_few_networks_are_not_drawn(tmp_path: Path) -> None:
    put_records(tmp_path, {name: ERRORS[name] for name in list(ERRORS)[:1]})
    assert draw_overview([panel(tmp_path)]) is None
    assert draw_overview([]) is None


def test_circles_are_errors_with_statistics_for_each_evaluation(tmp_path: Path) -> None:
    shared, alike = "RKNN-rk4_38@k=120_120_120", "ResNet@k=120_120_120"
    errors = {shared: (0.16, 0.2), alike: (0.06, 0.07), "Identity@k=120_120_120": (0.3,)}
    folders = put_records(tmp_path, errors, "cifar10", "fast", evaluations=12)
    for folder, each in zip(folders, (61, 62, 50), strict=False):
        put_measured(folder, each)
    results = results_of(tmp_path, "cifar10", "fast")
    rows = {row.network: row for row in results.rows if row.results}
    figure = drawn([Panel("CIFAR-10", results, tuple(rows.items()))])
    (axes,) = figure.axes
    hollow = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
    assert [np.asarray(line.get_xdata()).tolist() for line in hollow] == [pytest.approx([6.1, 6.2]), []]
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == EACH
