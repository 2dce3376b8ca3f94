"""Differences with their intervals, against the table's reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from report.records import ERRORS, put_records
from rkcnn.evaluation.binomial import sampling_error
from rkcnn.record.tables import TABLES
from rkcnn.report.compare import compare
from rkcnn.report.forest import draw_forest
from rkcnn.report.statistics import welch
from rkcnn.report.view import view, view_of

REFERENCE = "RKCNN-R-2@k=32"  # the paper's best
LABELS = {row.label: row.spec for row in view_of(TABLES["mnist"], ()).rows}


def draw(folder: Path) -> Axes:
    figure = draw_forest(view(TABLES["mnist"], folder))
    assert figure
    (axes,) = figure.axes
    return axes


def names(axes: Axes) -> list[str]:
    """The networks' own, for what the figure calls them as the tables do."""
    return [LABELS.get(text.get_text(), text.get_text()) for text in axes.get_yticklabels()]


def test_points_and_intervals_are_welchs(tmp_path: Path) -> None:
    put_records(tmp_path)
    axes = draw(tmp_path)
    assert set(names(axes)) == set(ERRORS) - {REFERENCE}
    points, bars = ([line for line in axes.lines if str(line.get_gid()).startswith(kind)] for kind in ("point", "bar"))
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
    separable = {each.row.spec for each in compare(view(TABLES["mnist"], tmp_path)) if each.separable}
    assert {name for name, is_bold in zip(names(axes), bold, strict=True) if is_bold} == separable
    assert 0 < len(separable) < len(bold)


def test_the_stripe_is_the_test_sets_own_error(tmp_path: Path) -> None:
    put_records(tmp_path)
    stripe = draw(tmp_path).patches[0].get_window_extent()
    axes = draw(tmp_path)
    (left, _), (right, _) = axes.transData.inverted().transform([(stripe.x0, 0), (stripe.x1, 0)])
    assert (right - left) / 2 == pytest.approx(100 * sampling_error(0.003525, 10_000).se, rel=1e-6)


def test_without_the_tables_reference_there_is_no_figure(tmp_path: Path) -> None:
    put_records(tmp_path, {name: errors for name, errors in ERRORS.items() if name != REFERENCE})
    assert draw_forest(view(TABLES["mnist"], tmp_path)) is None
    put_records(tmp_path, {REFERENCE: (0.003, 0.0031, None)})
    assert draw_forest(view(TABLES["mnist"], tmp_path)) is None, "nor against what is left of it"


def test_rows_with_diverged_runs_are_left_out(tmp_path: Path) -> None:
    put_records(tmp_path, {**ERRORS, "DenseNet-2@k=32": (0.002, 0.0021, None)})
    assert "DenseNet-2@k=32" not in names(draw(tmp_path))


def test_a_single_run_is_a_hollow_point(tmp_path: Path) -> None:
    put_records(tmp_path, {REFERENCE: ERRORS[REFERENCE], "Identity@k=32": (0.01,)})
    axes = draw(tmp_path)
    (point,) = [line for line in axes.lines if str(line.get_gid()).startswith("point")]
    assert point.get_fillstyle() == "none"
    assert "+0.647  (no interval)" in [text.get_text() for text in axes.texts]


def test_each_norm_has_a_reference_of_its_own(tmp_path: Path) -> None:
    specs = [spec for spec in TABLES["norms"].specs if spec.startswith(("RKCNN-R", "RKCNN-I"))]
    put_records(tmp_path, {spec: (0.003, 0.0035 + 0.0001 * i) for i, spec in enumerate(specs)}, table="norms")
    figure = draw_forest(view(TABLES["norms"], tmp_path))
    assert figure
    title = figure.get_suptitle().replace("\n", " ")
    assert all(spec in title for spec in specs if spec.startswith("RKCNN-R"))
    assert set(names(figure.axes[0])) == {spec for spec in specs if spec.startswith("RKCNN-I")}


def test_smoke_has_no_figure(tmp_path: Path) -> None:
    put_records(tmp_path, {"ResNet@k=32": (0.3, 0.31), "RKCNN-R-2@k=32": (0.1, 0.11)}, preset="smoke")
    assert draw_forest(view(TABLES["mnist"], tmp_path)) is None


def test_nothing_to_compare_is_no_figure(tmp_path: Path) -> None:
    assert draw_forest(view(TABLES["mnist"], tmp_path)) is None
    put_records(tmp_path, {"ResNet@k=32": (0.004, 0.005)})
    assert draw_forest(view(TABLES["mnist"], tmp_path)) is None
