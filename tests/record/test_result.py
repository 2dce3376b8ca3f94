"""Results go through their files unchanged, and a file that is none says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from outcome import outcome
from rkcnn.error import InputError
from rkcnn.record.result import Result, find_results, read_result


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    made = outcome(status="diverged: the loss is not finite", error=None)
    (tmp_path / "result.json").write_bytes(made.to_json())
    assert read_result(tmp_path / "result.json") == made
    assert not made.finished
    assert outcome().finished


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"{}", b'{"run": {}}', b"\xff\xfe"])
def test_a_file_that_is_no_result(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"result\.json can't be read as a result: .*; remove it and train again"):
        read_result(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_result(tmp_path / "result.json")


def test_all_below_a_folder_also_past_a_bad_one(tmp_path: Path) -> None:
    for name in ("b", "a/deep", "c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "result.json").write_bytes(outcome().to_json() if name != "b" else b"{")
    found = list(find_results(tmp_path))
    assert [path.parent.relative_to(tmp_path).as_posix() for path, _ in found] == ["a/deep", "b", "c"]
    assert [isinstance(result, Result) for _, result in found] == [True, False, True]
