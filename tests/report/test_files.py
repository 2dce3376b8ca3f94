"""A report as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from report.records import put_records
from rkcnn.error import InputError
from rkcnn.record.table import TABLES
from rkcnn.report.files import write_files
from rkcnn.report.judged import judge_claims
from rkcnn.report.view import read_records, view


def test_equal_records_give_equal_files(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        put_records(tmp_path / name)
        judged = {"paper": judge_claims(read_records(tmp_path / name)[0], "paper")}
        views = [view(TABLES[table], tmp_path / name) for table in ("mnist", "sota-mnist")]
        paths = list(write_files(views, judged, tmp_path / "out" / name))
        assert {"mnist.md", "mnist.csv", "sota-mnist.md", "sota-mnist.csv"} <= {path.name for path in paths}
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]


def test_a_table_has_the_claims_that_speak_of_it(tmp_path: Path) -> None:
    put_records(tmp_path)
    judged = {"paper": judge_claims(read_records(tmp_path)[0], "paper")}
    list(write_files([view(TABLES[name], tmp_path) for name in ("mnist", "sota-mnist")], judged, tmp_path / "out"))
    assert "the bottleneck doesn't help ResNet" in (tmp_path / "out" / "mnist.md").read_text(encoding="utf-8")
    assert "the bottleneck doesn't help" not in (tmp_path / "out" / "sota-mnist.md").read_text(encoding="utf-8")


def test_a_folder_that_cant_be_written(tmp_path: Path) -> None:
    put_records(tmp_path / "runs", {"ResNet@k=32": (0.004,)})
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="name another folder with -o"):
        list(write_files([view(TABLES["mnist"], tmp_path / "runs")], {}, tmp_path / "file" / "out"))
