"""Results by the folders that a user names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from outcome import outcome
from rkcnn.error import InputError
from rkcnn.record.selection import select_results


def put(folder: Path, seed: int = 0) -> Path:
    made = outcome()
    folder.mkdir(parents=True)
    (folder / "result.json").write_bytes(replace(made, run=replace(made.run, seed=seed)).to_json())
    return folder


def test_a_run_its_file_and_a_folder_of_runs(tmp_path: Path) -> None:
    folders = [put(tmp_path / "runs" / f"seed-{seed}", seed) for seed in range(3)]
    (tmp_path / "runs" / "begun").mkdir()
    found, unreadable = select_results([folders[2], folders[1] / "result.json", tmp_path / "runs"])
    assert [folder for folder, _ in found] == [folders[2], folders[1], folders[0]], "in the order given, each once"
    assert [result.run.seed for _, result in found] == [2, 1, 0]
    assert unreadable == []


def test_what_cant_be_read_is_told_and_the_others_count(tmp_path: Path) -> None:
    put(tmp_path / "good")
    bad = put(tmp_path / "bad") / "result.json"
    bad.write_text("{}")
    found, (error,) = select_results([tmp_path])
    assert [folder.name for folder, _ in found] == ["good"]
    assert str(bad) in str(error)
    with pytest.raises(InputError, match="can't be read as a result of rkcnn"):
        select_results([bad.parent])


def test_nothing_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no folder .*nowhere here; name the folders of finished runs"):
        select_results([tmp_path / "nowhere"])
    with pytest.raises(InputError, match=r"holds no result\.json; name the folders of finished runs"):
        select_results([tmp_path])
    with pytest.raises(InputError, match="no runs given; name the folders"):
        select_results([])
