"""Error against cost: the points are the rows, and none beats the frontier."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from outcome import outcome
from report.records import ERRORS, put_records, results_of
from rkcnn.record.tables import TABLES
from rkcnn.report.figures.frontier import COSTS, SMALLER, draw_frontier, find_frontier
from rkcnn.report.figures.style import PALE, caption_of, look_of
from rkcnn.report.paper import COST_TABLES, printed_error
from rkcnn.report.results import ResultTable

PLACES = st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8)), max_size=12)


@given(PLACES)
def test_the_frontier_is_what_nothing_beats(points: list[tuple[float, float]]) -> None:
    def beaten(x: float, y: float) -> bool:
        return any(a <= x and b <= y and (a, b) != (x, y) for a, b in points)

    found = find_frontier(points)
    assert {points[i] for i in found} == {point for point in points if not beaten(*point)}
    assert len({points[i] for i in found}) == len(found)
    assert [points[i][0] for i in found] == sorted(points[i][0] for i in found)


def look(folder: Path, preset: str = "paper") -> ResultTable:
    for number, (spec, errors) in enumerate(ERRORS.items()):
        some = errors if preset == "paper" else errors[:1]
        params, flops = 30_000 + 9_000 * number, 4_000_000 + 10**6 * number
        put_records(folder, {spec: some}, preset=preset, params=params, flops=flops)
    return results_of(folder)


def is_point(gid: str | None) -> bool:
    return gid is not None and gid.startswith("point")


@pytest.mark.parametrize(("cost", "unit"), [("params", 1e3), ("flops", 1e6)])
def test_points_are_the_rows_that_have_results(tmp_path: Path, cost: str, unit: float) -> None:
    seen = look(tmp_path)
    figure = draw_frontier(seen, cost)  # type: ignore[arg-type]
    assert figure
    (axes,) = figure.axes
    points = {gid: np.asarray(line.get_xydata())[0] for line in axes.lines if is_point(gid := line.get_gid())}
    assert len(points) == len(ERRORS)
    for i, row in enumerate(seen.rows):
        if row.last:
            assert points[f"point-{i}"] == pytest.approx((getattr(row, cost) / unit, 100 * row.last.mean))
    assert {text.get_text() for text in axes.texts} == {row.label for row in seen.rows if row.last}, "as in the table"
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
    assert not [cost for cost in COSTS if draw_frontier(results_of(tmp_path), cost)]
    put_records(tmp_path)  # of before FLOPs were counted
    assert draw_frontier(results_of(tmp_path), "flops") is None
    assert draw_frontier(results_of(tmp_path), "params")


@pytest.mark.parametrize("machine", [{"gpu": "NVIDIA H200", "together": 10}, {"gpu": "NVIDIA H200"}])
def test_time_is_drawn_only_of_runs_that_were_alone(tmp_path: Path, machine: dict[str, object]) -> None:
    put_records(tmp_path, dict.fromkeys(("ResNet@k=32", "Identity@k=32", "RKCNN-E-2@k=32"), (0.004, 0.005)))
    assert draw_frontier(results_of(tmp_path), "seconds")
    put_records(tmp_path, {"RKCNN-R-2@k=32": (0.004, 0.005)}, machine=machine)
    assert draw_frontier(results_of(tmp_path), "seconds") is None
    assert draw_frontier(results_of(tmp_path), "params")


def test_survivors_are_pale_and_no_part_of_the_frontier(tmp_path: Path) -> None:
    put_records(tmp_path, {"DenseNet-2@k=32": (0.001, None)}, params=20_000)
    put_records(tmp_path, {"RKNN-rk4_38@k=32": (0.001, None)}, params=10_000)
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)}, params=30_000)
    figure = draw_frontier(results_of(tmp_path), "params")
    assert figure
    assert [line.get_label() for line in figure.axes[0].lines if line.get_label() == "frontier"] == []
    put_records(tmp_path, {"Identity@k=32": (0.006, 0.007)}, params=25_000)
    figure = draw_frontier(results_of(tmp_path), "params")
    assert figure
    (line,) = (line for line in figure.axes[0].lines if line.get_label() == "frontier")
    assert np.asarray(line.get_ydata()).min() == pytest.approx(0.45)
    shades = [line.get_alpha() or 0 for line in figure.axes[0].lines if is_point(line.get_gid())]
    assert sorted(shades) == [PALE, PALE, 1, 1]
    assert "pale: some of its runs diverged" in entries(figure)
    assert "pale" in caption_of(figure)


def test_fewer_than_three_points_are_no_figure(tmp_path: Path) -> None:
    put_records(tmp_path, dict.fromkeys(("ResNet@k=32", "RKCNN-R-2@k=32"), (0.004, 0.005)))
    assert not [cost for cost in COSTS if draw_frontier(results_of(tmp_path), cost)]


def test_runs_without_error_can_be_drawn(tmp_path: Path) -> None:
    specs = ("ResNet@k=32", "Identity@k=32", "RKCNN-E-2@k=32")
    made = outcome((*[0.1] * 19, 0.0))
    changes = {name: getattr(made, name) for name in ("epochs", "stretches", "error", "error_best")}
    put_records(tmp_path, dict.fromkeys(specs, (0.0002,)), preset="fast", **changes)
    assert draw_frontier(results_of(tmp_path), "params")


def test_the_papers_mean_is_a_hollow_marker_at_the_same_cost(tmp_path: Path) -> None:
    seen = look(tmp_path)
    figure = draw_frontier(seen, "params")
    assert figure
    lines = {line.get_gid(): line for line in figure.axes[0].lines}
    for i, row in enumerate(seen.rows):
        if row.last:
            ours, printed = lines[f"point-{i}"], lines[f"bar-{i}-paper"]
            assert row.printed_mean is not None
            assert np.asarray(printed.get_xydata())[0] == pytest.approx(
                (np.asarray(ours.get_xdata())[0], 100 * row.printed_mean)
            )
            assert (printed.get_fillstyle(), printed.get_color()) == ("none", ours.get_color())
            assert (printed.get_marker(), ours.get_fillstyle()) == (ours.get_marker(), "full")
    fast = draw_frontier(look(tmp_path / "fast", "fast"), "params")
    assert fast
    assert not [line for line in fast.axes[0].lines if str(line.get_gid()).endswith("paper")], "another recipe"


def places(axes: Axes) -> dict[str, tuple[float, float]]:
    """Where each point is drawn, by its gid."""
    return {gid: tuple(np.asarray(line.get_xydata())[0]) for line in axes.lines if is_point(gid := str(line.get_gid()))}


def brackets(axes: Axes) -> list[NDArray[np.float64]]:
    """The horizontal ends of each bracket and of its stem."""
    lines = [line for line in axes.lines if line.get_gid() is None and line.get_label() != "frontier"]
    return [across for line in lines if len(across := np.asarray(line.get_xdata(), np.float64))]


def entries(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_networks_of_equal_cost_are_drawn_side_by_side_above_a_bracket(tmp_path: Path) -> None:
    alike = {"RKCNN-R-2@k=32": (0.0032, 0.0034), "RKCNN-I-2@k=32": (0.0034, 0.0036)}  # the lower error on the left
    put_records(tmp_path, alike, params=78_410)
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)}, params=52_234)
    seen = results_of(tmp_path)
    figure = draw_frontier(seen, "params")
    assert figure
    (axes,) = figure.axes
    at = places(axes)
    numbers = {row.network: f"point-{i}" for i, row in enumerate(seen.rows)}
    assert at[numbers["ResNet@k=32"]][0] == pytest.approx(52.234)
    pair = [at[numbers[spec]] for spec in alike]
    pixels = [axes.transData.transform(place)[0] for place in pair]
    size = figure.dpi / 72 * 7.5
    assert pixels[1] - pixels[0] > size, "neither marker hides the other"
    assert pair[0][0] * pair[1][0] == pytest.approx(78.410**2, rel=1e-3), "on either side of their cost"
    bracket, stem = brackets(axes)
    assert (bracket.min(), bracket.max()) == pytest.approx((pair[0][0], pair[1][0]), rel=1e-6)
    assert stem == pytest.approx([78.410, 78.410]), "at their cost"
    assert "side by side: equal cost" in entries(figure)
    assert "bracket" in caption_of(figure)


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> ResultTable:
    """Six networks of rising error."""
    folder = tmp_path_factory.mktemp("six")
    specs = (
        "RKCNN-R-2@k=32",
        "RKCNN-I-2@k=32",
        "RKNN-rk4_38@k=32",
        "RKNet-rk4_38@k=32",
        "ResNet@k=32",
        "Identity@k=32",
    )
    put_records(folder, {spec: (0.004 + 0.0001 * i, 0.0042 + 0.0001 * i) for i, spec in enumerate(specs)})
    seen = results_of(folder)
    return replace(seen, rows=tuple(row for row in seen.rows if row.last))


SOME_COSTS = st.tuples(*[st.sampled_from((52_000, 52_100, 52_234, 52_362, 52_938, 56_000, 78_410))] * 6)


@settings(max_examples=25, deadline=None)
@given(SOME_COSTS)
@example((52_938, 78_410, 52_362, 52_938, 52_234, 52_938))  # as mnist by the fast recipe
def test_no_point_is_drawn_beyond_a_network_of_other_cost(six: ResultTable, costs: tuple[int, ...]) -> None:
    """Nor below the frontier, nor within the bracket of others."""
    rows = [replace(row, params=cost) for row, cost in zip(six.rows, costs, strict=True)]
    figure = draw_frontier(replace(six, rows=tuple(rows)), "params")
    assert figure
    (axes,) = figure.axes
    drawn = places(axes)
    for i, j in permutations(range(6), 2):
        if costs[i] < costs[j]:
            assert drawn[f"point-{i}"][0] < drawn[f"point-{j}"][0]
    for bracket in brackets(axes)[::2]:
        left, right = bracket.min() * (1 - 1e-9), bracket.max() * (1 + 1e-9)
        assert len({cost for i, cost in enumerate(costs) if left <= drawn[f"point-{i}"][0] <= right}) == 1
    (frontier,) = (line for line in axes.lines if line.get_label() == "frontier")
    corners = np.asarray(frontier.get_xydata())
    for x, y in drawn.values():
        assert x >= corners[0, 0] * (1 - 1e-9)
        assert y >= corners[corners[:, 0] <= x * (1 + 1e-9), 1].min() - 1e-9


def test_without_room_networks_of_equal_cost_are_drawn_at_it(tmp_path: Path) -> None:
    """Beside a network that is 0.2 % dearer."""
    put_records(tmp_path, {"RKCNN-I-2@k=26": (0.0038, 0.0042), "RKCNN-R-2@k=26": (0.0042, 0.0043)}, params=52_150)
    put_records(tmp_path, {"ResNet@k=32": (0.0042, 0.0043)}, params=52_234)
    put_records(tmp_path, {"RKCNN-R-2@k=32": (0.0034, 0.0036)}, params=78_410)
    figure = draw_frontier(results_of(tmp_path), "params")
    assert figure
    (axes,) = figure.axes
    assert sorted(x for x, _ in places(axes).values()) == pytest.approx([52.150, 52.150, 52.234, 78.410])
    assert not brackets(axes)
    assert "side by side: equal cost" not in entries(figure)
    assert "bracket" not in caption_of(figure)


def test_a_marker_over_another_is_smaller(tmp_path: Path) -> None:
    """As RKCNN-I and R of equal cost and error beside a network that is hardly dearer; the others keep their size."""
    put_records(tmp_path, {"RKCNN-I-2@k=26": (0.0040, 0.0042), "RKCNN-R-2@k=26": (0.0040, 0.0042)}, params=52_150)
    put_records(tmp_path, {"ResNet@k=32": (0.0062, 0.0063)}, params=52_234)
    put_records(tmp_path, {"RKCNN-R-2@k=32": (0.0034, 0.0036)}, params=78_410)
    seen = results_of(tmp_path)
    figure = draw_frontier(seen, "params")
    assert figure
    sizes = {str(line.get_gid()): line.get_markersize() for line in figure.axes[0].lines}
    shares = {
        row.network: sizes[f"point-{i}"] / look_of(row.family).size for i, row in enumerate(seen.rows) if row.last
    }
    assert shares == {"ResNet@k=32": 1, "RKCNN-I-2@k=26": 1, "RKCNN-R-2@k=26": SMALLER, "RKCNN-R-2@k=32": 1}


def test_fast_says_so_and_smoke_has_no_figure(tmp_path: Path) -> None:
    figure = draw_frontier(look(tmp_path / "fast", "fast"), "params")
    assert figure
    assert "FAST: " in figure.get_suptitle()
    assert not [cost for cost in COSTS if draw_frontier(look(tmp_path / cost, "smoke"), cost)]


def test_whatever_belongs_to_a_point_fades_with_it(tmp_path: Path) -> None:
    """A part without a gid would stay on the page when its family is filtered away; the legend's have no data."""
    figure = draw_frontier(look(tmp_path), "params")
    assert figure
    (axes,) = figure.axes
    drawn = [line for line in axes.lines if len(np.asarray(line.get_xdata()))]
    assert [line.get_label() for line in drawn if line.get_gid() is None] == ["frontier"], "no two cost the same"
    arrows = [text.arrow_patch for text in axes.texts if isinstance(text, Annotation) and text.arrow_patch]
    gids = [part.get_gid() for part in (*drawn, *axes.collections, *axes.texts, *arrows)]
    assert gids.count(None) == 1
    assert len(set(gids)) == len(gids)


@pytest.mark.parametrize(("cost", "seed"), [("params", 0), ("flops", 1), ("flops", 2), ("flops", 6)])
def test_names_of_a_whole_table_dont_lie_on_each_other(tmp_path: Path, cost: str, seed: int) -> None:
    """All 19 rows, at the costs that the paper printed and errors near its own."""
    rng = np.random.default_rng(seed)
    table = TABLES["mnist"]
    for spec in table.specs:
        cells = COST_TABLES["tb:MNIST"].rows.get(spec)
        printed = printed_error("tb:MNIST", spec, "mnist")
        mean = printed.mean if printed and printed.mean else 0.0060
        params = float(cells.params) if cells and cells.params else 33.67
        flops = float(cells.flops.lstrip(">")) if cells and cells.flops else 7.11
        errors = [float(mean * (1 + 0.08 * z)) for z in rng.normal(size=3)]
        put_records(tmp_path, {spec: errors}, params=round(1e3 * params), flops=round(1e6 * flops))
    figure = draw_frontier(results_of(tmp_path), cost)  # type: ignore[arg-type]
    assert figure
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # an annotation's own holds its line, too
    assert len(boxes) == len(table.specs)
    assert not [pair for pair in combinations(boxes, 2) if Bbox.intersection(*pair) is not None]
    assert all(axes.bbox.padded(1).containsx(x) for box in boxes for x in (box.x0, box.x1))
