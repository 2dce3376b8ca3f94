"""RKCNN beside the numerical models when all have the same norm."""

from __future__ import annotations

from pathlib import Path

from report.records import put_records
from rkcnn.report.matched_norms import NOT_RUN, draw_norms, write_norms
from rkcnn.report.published import report_published
from rkcnn.report.results import read_records


def write(folder: Path) -> str:
    return write_norms(report_published(read_records(folder)[0]))


def test_without_two_runs_of_each_there_is_no_table(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-R-2@k=32,norm=gn": (0.004,), "ResNet@k=32": (0.005, 0.006)}, "norms", "fast")
    assert write(tmp_path) == NOT_RUN


def test_pairs_of_the_same_norm_alone_are_compared(tmp_path: Path) -> None:
    errors = {
        "RKCNN-R-2@k=32,norm=gn": (0.0040, 0.0042, 0.0041),
        "RKCNN-R-2@k=32,norm=bn": (0.0039, 0.0040, 0.0041),
        "ResNet@k=32": (0.0060, 0.0061, 0.0062),
        "RKNN-rk4_38@k=32": (0.0041, 0.0043, 0.0048),
    }
    put_records(tmp_path, errors, "norms", "fast")
    table = write(tmp_path)
    assert "RKCNN-R-2@k=32,norm=gn | ResNet@k=32 | -0.200 (-0.223 to -0.177) |" in table
    assert "RKCNN-R-2@k=32,norm=gn | RKNN-rk4_38@k=32 | -0.030 (" in table
    assert "norm=bn" not in table
    assert table.endswith("these are told apart: RKCNN-R-2@k=32,norm=gn and ResNet@k=32.")


def test_both_norms_are_drawn_on_one_scale(tmp_path: Path) -> None:
    errors = {
        "RKCNN-R-2@k=32,norm=gn": (0.0040, 0.0042),
        "RKCNN-R-2@k=32,norm=bn": (0.0030, 0.0040),
        "RKNN-rk4_38@k=32": (0.0090,),
        "RKNN-rk4_38@k=32,norm=bn": (0.0041,),
        "RKNN-rk4_38@k=32,norm=bn,statistics=each": (0.0039, 0.0040),
    }
    put_records(tmp_path, errors, "norms", "fast")
    figure = draw_norms(report_published(read_records(tmp_path)[0]))
    assert figure is not None
    batch, group = figure.axes
    assert [label.get_text() for label in batch.get_yticklabels()] == ["RKNN", "RKNN, a set each", "RKCNN-R"]
    assert batch.get_xlim() == group.get_xlim()
    assert [text.get_text() for text in group.texts] == [], "a norm without running statistics has no line to be empty"


def test_too_few_networks_make_no_picture(tmp_path: Path) -> None:
    put_records(tmp_path, {"RKCNN-R-2@k=32,norm=gn": (0.004,), "ResNet@k=32": (0.005, 0.006)}, "norms", "fast")
    assert draw_norms(report_published(read_records(tmp_path)[0])) is None
