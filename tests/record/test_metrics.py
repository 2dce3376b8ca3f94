"""metrics.csv: one row an epoch, whatever happened to the file before."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from outcome import outcome
from rkcnn.error import InputError
from rkcnn.record.metrics import MetricsFile, list_metrics
from rkcnn.record.result import Epoch
from rkcnn.record.run import Run

RESULT = outcome((0.5, 0.02, 0.03))
RUN = RESULT.run
EPOCHS = [replace(epoch, images=300, seconds=1.5) for epoch in RESULT.epochs]  # of batches of 128


def read(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "metrics.csv").read_text(encoding="utf-8").splitlines()))


def begin(folder: Path, epochs: list[Epoch], run: Run = RUN) -> MetricsFile:
    metrics = MetricsFile(folder, run, "choose another folder")
    metrics.write(epochs)
    return metrics


def test_a_row_for_each_epoch() -> None:
    first, *_, last = list_metrics(RUN, EPOCHS)
    assert first == {
        "step": 3,  # two batches of 128 and one of 44
        "epoch": 1,
        "train/loss": 1.5,
        "train/error": 0.25,
        "test/error": 0.5,
        "lr": 0.1,
        "seconds": 1.5,
    }
    assert (last["step"], last["epoch"]) == (9, 3)


def test_errors_on_held_out_training_images_are_called_so(tmp_path: Path) -> None:
    begin(tmp_path, EPOCHS, replace(RUN, data="mnist-mini~validation-200"))
    assert read(tmp_path)[0]["validation/error"] == "0.5"


def test_appended_rows_are_those_that_are_written_at_once(tmp_path: Path) -> None:
    metrics = begin(tmp_path, [])
    assert read(tmp_path) == []
    for count in (1, 2, 3):
        metrics.append(EPOCHS[:count])
        assert len(read(tmp_path)) == count
    appended = (tmp_path / "metrics.csv").read_bytes()
    begin(tmp_path, EPOCHS)
    assert (tmp_path / "metrics.csv").read_bytes() == appended
    assert [{name: float(value) for name, value in row.items()} for row in read(tmp_path)] == [
        *list_metrics(RUN, EPOCHS)
    ]


def test_continued_from_a_checkpoint_no_row_is_there_twice_and_none_is_torn(tmp_path: Path) -> None:
    """The process was killed after two epochs and in the middle of the third row; its checkpoint has one epoch."""
    metrics = begin(tmp_path, [])
    metrics.append(EPOCHS[:1])
    metrics.append(EPOCHS[:2])
    with (tmp_path / "metrics.csv").open("ab") as file:
        file.write(b"9,3,0.09")
    metrics = begin(tmp_path, EPOCHS[:1])
    metrics.append(EPOCHS[:2])
    metrics.append(EPOCHS)
    assert [row["epoch"] for row in read(tmp_path)] == ["1", "2", "3"]


def test_what_a_failed_append_left_is_overwritten(tmp_path: Path) -> None:
    metrics = begin(tmp_path, [])
    with (tmp_path / "metrics.csv").open("ab") as file:
        file.write(b"3,1,1.")
    metrics.append(EPOCHS[:1])
    assert [row["step"] for row in read(tmp_path)] == ["3"]


def test_a_row_that_cant_be_appended_stops_nothing_and_comes_at_the_end(tmp_path: Path) -> None:
    metrics = begin(tmp_path, [])
    (tmp_path / "metrics.csv").unlink()
    metrics.append(EPOCHS[:1])
    assert not (tmp_path / "metrics.csv").exists()
    metrics.write(EPOCHS)
    assert len(read(tmp_path)) == 3


def test_a_folder_that_cant_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"can't write to .*metrics\.csv: its folder doesn't exist"):
        begin(tmp_path / "nowhere", [])
