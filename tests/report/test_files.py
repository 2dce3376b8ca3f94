"""A report as files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from report.records import put_records, results_of
from rkcnn.error import InputError
from rkcnn.report.files import write_files, write_tables
from rkcnn.report.report import Report, build_report
from rkcnn.report.results import read_records


def report(folder: Path, *tables: str) -> Report:
    return build_report([results_of(folder, name) for name in tables or ("mnist",)], read_records(folder)[0])


def test_equal_records_give_equal_files(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        put_records(tmp_path / name)
        found = report(tmp_path / name)
        paths = list(write_tables(found, found.tables[0], tmp_path))
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]


def test_a_table_has_the_claims_that_speak_of_it(tmp_path: Path) -> None:
    put_records(tmp_path)
    texts = []
    found = report(tmp_path, "mnist", "sota-mnist")
    for part in found.tables:
        paths = list(write_tables(found, part, tmp_path))
        assert [path.name for path in paths] == [f"{part.name}.md", f"{part.name}.csv"]
        texts.append(paths[0].read_text(encoding="utf-8"))
    assert ["the bottleneck doesn't help ResNet" in text for text in texts] == [True, False]


def test_spreadsheets_and_programs_read_the_csv(tmp_path: Path) -> None:
    """Excel needs the mark; pandas, which isn't here, passes over it as utf-8-sig does."""
    put_records(tmp_path, {"ResNet@k=32": (0.004,)})
    found = report(tmp_path)
    _, path = write_tables(found, found.tables[0], tmp_path)
    assert path.read_bytes().startswith(b"\xef\xbb\xbftable,")
    lines = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    assert lines[1]["error_printed"] == "0.33(0.372±0.031)"
    assert lines[1]["table"] == "mnist"


def test_what_is_in_the_way_is_found_before_anything_is_written(tmp_path: Path) -> None:
    put_records(tmp_path / "runs", {"ResNet@k=32": (0.004,)})
    found = report(tmp_path / "runs")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"`output=.*file` given, and that is a file; name a folder"):
        list(write_files(found, tmp_path / "file"))
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    with pytest.raises(InputError, match=r"report\.html is a folder where the report writes a file; remove it, or"):
        list(write_files(found, tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["report.html"]


def test_a_folder_that_cant_be_written(tmp_path: Path) -> None:
    put_records(tmp_path / "runs", {"ResNet@k=32": (0.004,)})
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="name another output folder"):
        list(write_files(report(tmp_path / "runs"), tmp_path / "file" / "out"))
