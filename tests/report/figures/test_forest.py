"""Differences with their intervals, against the table's reference."""

from __future__ import annotations

import re
from math import sqrt
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path as Shape

from report.records import ERRORS, put_records, report_of
from rkcnn.record.tables import TABLES
from rkcnn.report.figures.forest import find_ends
from rkcnn.report.figures.style import PALE, caption_of
from rkcnn.report.results import build_result_table
from rkcnn.report.statistics import welch

REFERENCE = "RKCNN-R-2@k=32"  # the paper's best
LABELS = {row.label: row.network for row in build_result_table(TABLES["mnist"], ()).rows}


def draw(folder: Path) -> Axes:
    figure = report_of(folder).figure("forest")
    assert figure
    (axes,) = figure.axes
    return axes


def figure_of(axes: Axes) -> Figure:
    assert isinstance(axes.figure, Figure)
    return axes.figure


def entries(axes: Axes) -> list[str]:
    return [text.get_text() for text in figure_of(axes).legends[0].get_texts()]


def arrows(axes: Axes) -> dict[str, float]:
    """The place of each arrow's tip, by its gid."""
    lines = {str(line.get_gid()): line for line in axes.lines if isinstance(line.get_marker(), Shape)}
    return {gid: float(np.asarray(line.get_xdata())[0]) for gid, line in lines.items() if gid != "None"}


def names(axes: Axes) -> list[str]:
    """The networks' own, for what the figure calls them as the tables do."""
    return [LABELS.get(text.get_text(), text.get_text()) for text in axes.get_yticklabels()]


def test_points_and_intervals_are_welchs(tmp_path: Path) -> None:
    put_records(tmp_path)
    axes = draw(tmp_path)
    assert set(names(axes)) == set(ERRORS) - {REFERENCE}
    points, bars = (
        [line for line in axes.lines if re.fullmatch(rf"{kind}-\d+", str(line.get_gid()))] for kind in ("point", "bar")
    )
    for name, point, bar in zip(names(axes), points, bars, strict=True):
        found = welch(ERRORS[name], ERRORS[REFERENCE])
        assert found.interval
        assert np.asarray(point.get_xdata())[0] == pytest.approx(100 * found.value)
        assert np.asarray(bar.get_xdata()) == pytest.approx([100 * bound for bound in found.interval])
    values = [float(np.asarray(point.get_xdata())[0]) for point in points]
    assert values == sorted(values)
    assert axes.figure.get_suptitle() == "mnist: error minus that of RKCNN-R-2 k=32"


def test_what_separates_after_correction_is_bold(tmp_path: Path) -> None:
    """As the table concludes."""
    put_records(tmp_path)
    axes = draw(tmp_path)
    bold = [text.get_fontweight() == "bold" for text in axes.texts]
    separable = {each.row.network for each in report_of(tmp_path).comparisons if each.separable}
    assert {name for name, is_bold in zip(names(axes), bold, strict=True) if is_bold} == separable
    assert 0 < len(separable) < len(bold)


def stripes(axes: Axes) -> list[tuple[float, float]]:
    """The ends of the grey stripe behind each row."""
    found = [np.asarray(stripe.get_paths()[0].vertices)[:, 0] for stripe in axes.collections]
    return [(float(xs.min()), float(xs.max())) for xs in found]


def test_the_stripe_is_the_standard_error_of_a_difference(tmp_path: Path) -> None:
    """Without predictions that of two networks that err independently: sqrt(2) times one error's, if they are equal."""
    put_records(tmp_path)
    axes = draw(tmp_path)
    for name, (left, right) in zip(names(axes), stripes(axes), strict=True):
        first, second = (fmean(ERRORS[each]) for each in (name, REFERENCE))
        se = 100 * sqrt((first * (1 - first) + second * (1 - second)) / 10_000)
        assert (left, right) == pytest.approx((-se, se), rel=1e-6)
    labels = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert labels[0].startswith("± one standard error of a difference of two runs on these test images, 0.08 to 0.09")
    assert labels[0].endswith("(if the two err independently)")


def test_the_stripe_is_narrower_where_predictions_say_how_often_two_differ(tmp_path: Path) -> None:
    for at in put_records(tmp_path):
        said = np.zeros(10_000, np.int16)
        said[: 16 * list(ERRORS).index(at.parents[1].name)] = 1  # 64 of the last, which is the reference
        np.save(at / "predictions.npy", said)
    axes = draw(tmp_path)
    differing = {name: 64 - 16 * number for number, name in enumerate(ERRORS)}
    for name, (left, right) in zip(names(axes), stripes(axes), strict=True):
        se = 100 * sqrt(differing[name]) / 10_000
        assert (left, right) == pytest.approx((-se, se), rel=1e-6)
    label = axes.figure.legends[0].get_texts()[0].get_text()
    assert label.endswith("0.04 to 0.08\n(from the images that seed 0 of the two judges differently)")


def test_the_papers_differences_are_hollow(tmp_path: Path) -> None:
    put_records(tmp_path)
    axes = draw(tmp_path)
    hollow = [line for line in axes.lines if str(line.get_gid()).endswith("-paper")]
    found = dict(zip(names(axes), (float(np.asarray(line.get_xdata())[0]) for line in hollow), strict=True))
    assert found["ResNet@k=32"] == pytest.approx(0.372 - 0.308)
    assert {line.get_fillstyle() for line in hollow} == {"none"}


def test_without_the_tables_reference_there_is_no_figure(tmp_path: Path) -> None:
    put_records(tmp_path, {name: errors for name, errors in ERRORS.items() if name != REFERENCE})
    assert report_of(tmp_path).figure("forest") is None
    put_records(tmp_path, {REFERENCE: (0.003, 0.0031, None)})
    assert report_of(tmp_path).figure("forest") is None, "nor against its surviving runs"


def test_rows_with_diverged_runs_are_left_out(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "DenseNet-2@k=32": (0.002, 0.0021, None)})
    assert "DenseNet-2@k=32" not in names(draw(tmp_path))


def test_a_single_run_is_a_pale_point(tmp_path: Path) -> None:
    put_records(tmp_path, {REFERENCE: ERRORS[REFERENCE], "Identity@k=32": (0.01,), "ResNet@k=32": (0.004, 0.005)})
    axes = draw(tmp_path)
    shades = [line.get_alpha() for line in axes.lines if str(line.get_gid()).startswith("point")]
    assert shades == [1, PALE]
    assert "+0.647  (no interval)" in [text.get_text() for text in axes.texts]
    assert "pale: no interval" in entries(axes)
    assert "pale" in caption_of(figure_of(axes))


@pytest.mark.parametrize("wide", [(0.0005, 0.008), (0.05, 0.0505)])
def test_a_wide_row_doesnt_flatten_the_others(tmp_path: Path, wide: tuple[float, float]) -> None:
    """Its interval, of two runs that differ, goes beyond both ends; or all of it lies far to the right."""
    put_records(tmp_path, {**ERRORS, "Identity@k=32": wide})
    axes = draw(tmp_path)
    low, high = axes.get_xlim()
    others = [name for name in names(axes) if name != "Identity@k=32"]
    found = [welch(ERRORS[name], ERRORS[REFERENCE]).interval for name in others]
    ends = [100 * bound for interval in found if interval for bound in interval]
    assert low < min(*ends, 0) < max(ends) < high < 2 * max(ends)
    (number,) = {gid.split("-")[1] for gid in arrows(axes)}
    if wide[0] < 0.01:
        assert arrows(axes) == {f"bar-{number}-left": low, f"bar-{number}-right": high}
        assert f"point-{number}" in [line.get_gid() for line in axes.lines], "the mean is on the axis"
    else:
        assert arrows(axes) == {f"point-{number}": high}, "in place of the marker"
    bound = welch(wide, ERRORS[REFERENCE]).interval
    assert bound
    assert any(f"{100 * bound[1]:+.3f}" in text.get_text() for text in axes.texts), "in numbers it is complete"
    assert "arrow: goes on or lies beyond the axis" in entries(axes)
    assert "arrow" in caption_of(figure_of(axes))


def test_rows_of_one_size_all_are_on_the_axis(tmp_path: Path) -> None:
    put_records(tmp_path)
    axes = draw(tmp_path)
    assert not arrows(axes)
    assert not [entry for entry in entries(axes) if "arrow" in entry or "pale" in entry]
    assert not {"arrow", "pale"} & set(re.findall(r"\w+", caption_of(figure_of(axes))))


def test_at_most_a_third_of_the_rows_leave_the_axis() -> None:
    """And those alone that stretch it much, together and each by itself."""
    near = [(-0.1, 0.2)] * 4
    assert find_ends([*near, (-1.0, 1.1)]) == (-0.1, 0.2)
    assert find_ends([*near, (-1.0, 1.1), (20.0, 21.0)]) == (-0.1, 0.2), "one after the other"
    assert find_ends([*near, (0.5, 0.6)]) == (-0.1, 0.6), "hardly more than twice as long"
    some = [*near, *near, (-0.1, 0.21), (-0.1, 0.22)]
    assert find_ends([*some, (-0.3, 0.49)]) == (-0.3, 0.49), "it stretches the axis of the eight, but not of the ten"
    assert find_ends([*some, (-0.4, 0.6)]) == (-0.1, 0.22), "the ten don't stand out from each other"
    assert find_ends([*near, *[(-1.0, 1.1)] * 3]) == (-1.0, 1.1), "too many"
    assert find_ends([(-0.1, 0.2), (-1.0, 1.1)]) == (-1.0, 1.1)
    assert find_ends([(0.0, 0.0)] * 4 + [(0.0, 1.0)]) == (0.0, 1.0)
    assert find_ends([(0.1, 0.2), (0.15, 0.3)]) == (0.0, 0.3), "the reference is always on it"


def test_the_papers_difference_beyond_the_axis_is_an_arrow_too(tmp_path: Path) -> None:
    """Where all networks have nearly the same error, the paper's differences are far."""
    alike = ("RKCNN-R-2@k=32", "RKCNN-I-2@k=32", "RKCNN-R-2@k=26", "RKCNN-I-2@k=26", "ResNet-bottleneck@k=32")
    for i, spec in enumerate(alike):
        put_records(tmp_path, {spec: [0.0036 + 1e-6 * (i + seed) for seed in range(5)]})
    for at in tmp_path.rglob("result.json"):
        np.save(at.with_name("predictions.npy"), np.zeros(10_000, np.int16))  # no stripe
    axes = draw(tmp_path)
    (gid,) = arrows(axes)
    assert re.fullmatch(r"bar-\d+-paper", gid)
    assert "arrow: goes on or lies beyond the axis" in entries(axes)


def test_each_norm_has_a_reference_of_its_own(tmp_path: Path) -> None:
    specs = [spec for spec in TABLES["norms"].specs if spec.startswith(("RKCNN-R", "RKCNN-I"))]
    put_records(tmp_path, {spec: (0.003, 0.0035 + 0.0001 * i) for i, spec in enumerate(specs)}, table="norms")
    figure = report_of(tmp_path, "norms").figure("forest")
    assert figure
    title = figure.get_suptitle().replace("\n", " ")
    assert all(spec in title for spec in specs if spec.startswith("RKCNN-R"))
    assert set(names(figure.axes[0])) == {spec for spec in specs if spec.startswith("RKCNN-I")}


def test_smoke_has_no_figure(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3, 0.31), "RKCNN-R-2@k=32": (0.1, 0.11)}, preset="smoke")
    assert report_of(tmp_path).figure("forest") is None


def test_nothing_to_compare_is_no_figure(tmp_path: Path) -> None:
    assert report_of(tmp_path).figure("forest") is None
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)})
    assert report_of(tmp_path).figure("forest") is None
