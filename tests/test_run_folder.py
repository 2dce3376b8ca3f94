"""The names of a run's files: each is found again, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from rkcnn import run_folder
from rkcnn.run_folder import (
    checkpoint_path,
    find_begun_folders,
    find_checkpoint_files,
    find_checkpoints,
    find_incomplete_files,
    is_checkpoint,
    tensors_of,
)

OTHERS = (
    run_folder.RESULT,
    run_folder.REPLACED_RESULT,
    run_folder.WEIGHTS,
    run_folder.PREDICTIONS,
    run_folder.LABELS,
    run_folder.METRICS,
    run_folder.CONFIG,
    run_folder.LOCK,
    run_folder.MEMORY,
    f"{run_folder.CURVES}.svg",
)


def test_a_checkpoint_is_two_files_named_by_its_position(tmp_path: Path) -> None:
    path = checkpoint_path(tmp_path, 12, 345)
    assert path == tmp_path / "checkpoint-00012-000345.json"
    assert tensors_of(path) == tmp_path / "checkpoint-00012-000345.safetensors"


def test_checkpoints_are_found_the_oldest_first_among_other_files(tmp_path: Path) -> None:
    positions = [(0, 7), (2, 0), (10, 3), (10, 20)]
    for name in OTHERS:
        (tmp_path / name).touch()
    for epoch, step in reversed(positions):
        path = checkpoint_path(tmp_path, epoch, step)
        path.touch()
        tensors_of(path).touch()
    unfinished = tmp_path / ".checkpoint-00011-000000.json.part"
    unfinished.touch()
    expected = [checkpoint_path(tmp_path, epoch, step) for epoch, step in positions]
    assert find_checkpoints(tmp_path) == expected
    assert set(find_checkpoint_files(tmp_path)) == {*expected, *map(tensors_of, expected), unfinished}


def test_a_folder_with_the_name_of_a_checkpoint_is_none(tmp_path: Path) -> None:
    path = checkpoint_path(tmp_path, 1, 0)
    path.mkdir()
    assert find_checkpoints(tmp_path) == list(find_checkpoint_files(tmp_path)) == []


def test_incomplete_files_are_found_also_those_of_older_versions(tmp_path: Path) -> None:
    left = [".result.json.part", ".metrics.csv.0123456789abcdef.part"]
    for name in (*left, ".other.part", "result.json", ".lock"):
        (tmp_path / name).touch()
    assert {path.name for path in find_incomplete_files(tmp_path)} == set(left)


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_are_no_checkpoints(name: str) -> None:
    assert not is_checkpoint(name)


@pytest.mark.parametrize("name", ["checkpoint-00001-000000.json", ".checkpoint-00001-000000.safetensors.part"])
def test_files_of_checkpoints(name: str) -> None:
    assert is_checkpoint(name)


def test_a_run_has_begun_if_it_has_a_checkpoint_and_no_result(tmp_path: Path) -> None:
    for name in ("b/seed-0", "a/seed-1", "done", "new"):
        (tmp_path / name).mkdir(parents=True)
        if name != "new":
            checkpoint_path(tmp_path / name, 1, 0).touch()
    (tmp_path / "done" / run_folder.RESULT).touch()
    assert find_begun_folders(tmp_path) == [tmp_path / "a/seed-1", tmp_path / "b/seed-0"]
    assert find_begun_folders(tmp_path / "nowhere") == []


def test_a_folder_that_is_not_there_has_no_checkpoints(tmp_path: Path) -> None:
    assert find_checkpoints(tmp_path / "nowhere") == []
    assert list(find_checkpoint_files(tmp_path / "nowhere")) == []
