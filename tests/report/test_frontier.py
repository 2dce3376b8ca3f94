"""Error against cost: the points are the rows, and none beats the frontier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.records import ERRORS, put_records
from rkcnn.record.table import TABLES
from rkcnn.report.frontier import COSTS, draw_frontier, find_frontier
from rkcnn.report.view import View, view

PLACES = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8)), max_size=12)


@given(PLACES)
def test_the_frontier_is_what_nothing_beats(points: list[tuple[float, float]]) -> None:
    def beaten(x: float, y: float) -> bool:
        return any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)

    found = find_frontier(points)
    assert {points[i] for i in found} == {point for point in points if not beaten(*point)}
    assert len({points[i] for i in found}) == len(found)
    assert [points[i][0] for i in found] == sorted(points[i][0] for i in found)


def look(folder: Path, pace: str = "paper") -> View:
    for number, (spec, errors) in enumerate(ERRORS.items()):
        some = errors if pace == "paper" else errors[:1]
        put_records(folder, {spec: some}, pace=pace, params=30_000 + 9_000 * number, flops=4_000_000 + number)
    return view(TABLES["mnist"], folder)


@pytest.mark.parametrize(("cost", "unit"), [("params", 1e3), ("flops", 1e6), ("seconds", 1.0)])
def test_points_are_the_rows_that_have_results(tmp_path: Path, cost: str, unit: float) -> None:
    seen = look(tmp_path)
    figure = draw_frontier(seen, cost)  # type: ignore[arg-type]
    assert figure
    (axes,) = figure.axes
    points = {line.get_gid(): np.asarray(line.get_xydata())[0] for line in axes.lines if line.get_gid()}
    assert len(points) == len(ERRORS)
    for i, row in enumerate(seen.rows):
        if row.last:
            assert points[f"point-{i}"] == pytest.approx((getattr(row, cost) / unit, 100 * row.last.mean))
    assert {text.get_text() for text in axes.texts} == set(ERRORS)
    assert len(axes.collections) == len(ERRORS), "a bar each"


def test_bars_are_one_deviation(tmp_path: Path) -> None:
    seen = look(tmp_path)
    figure = draw_frontier(seen, "params")
    assert figure
    row = next(row for row in seen.rows if row.last)
    assert row.last
    assert row.last.std is not None
    (bar,) = figure.axes[0].collections[0].get_segments()  # type: ignore[attr-defined]
    assert bar[1][1] - bar[0][1] == pytest.approx(200 * row.last.std)


def test_without_results_or_costs_there_is_no_figure(tmp_path: Path) -> None:
    assert not [cost for cost in COSTS if draw_frontier(view(TABLES["mnist"], tmp_path), cost)]
    put_records(tmp_path)  # of before FLOPs were counted
    assert draw_frontier(view(TABLES["mnist"], tmp_path), "flops") is None
    assert draw_frontier(view(TABLES["mnist"], tmp_path), "params")


@pytest.mark.parametrize("machine", [{"gpu": "NVIDIA H200", "together": 10}, {"gpu": "NVIDIA H200"}])
def test_time_is_drawn_only_of_runs_that_were_alone(tmp_path: Path, machine: dict[str, object]) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)})
    assert draw_frontier(view(TABLES["mnist"], tmp_path), "seconds")
    put_records(tmp_path, {"RKCNN-R-2@k=32": (0.004, 0.005)}, machine=machine)
    assert draw_frontier(view(TABLES["mnist"], tmp_path), "seconds") is None
    assert draw_frontier(view(TABLES["mnist"], tmp_path), "params")


def test_survivors_are_hollow_and_no_part_of_the_frontier(tmp_path: Path) -> None:
    put_records(tmp_path, {"DenseNet-2@k=32": (0.001, None)}, params=20_000)
    figure = draw_frontier(view(TABLES["mnist"], tmp_path), "params")
    assert figure
    assert [line.get_label() for line in figure.axes[0].lines if line.get_label() == "frontier"] == []
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)}, params=30_000)
    figure = draw_frontier(view(TABLES["mnist"], tmp_path), "params")
    assert figure
    (line,) = (line for line in figure.axes[0].lines if line.get_label() == "frontier")
    assert np.asarray(line.get_ydata()).min() == pytest.approx(0.45)
    styles = [line.get_fillstyle() for line in figure.axes[0].lines if line.get_gid()]
    assert sorted(styles) == ["full", "none"]


def test_a_single_run_without_error_can_be_drawn(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.0002,)}, error=0.0)
    assert draw_frontier(view(TABLES["mnist"], tmp_path), "params")


def test_smoke_and_fast_say_so(tmp_path: Path) -> None:
    for pace in ("fast", "smoke"):
        figure = draw_frontier(look(tmp_path / pace, pace), "params")
        assert figure
        assert pace.upper() in figure.axes[0].get_title()
