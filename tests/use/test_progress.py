"""What `rkcnn.train` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rkcnn.use.progress import clock, count, percent
from rkcnn.use.train import train
from use.conftest import Arrays


def test_a_run_is_described_and_followed(
    arrays: Arrays, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"epochs": 2, "batch": 50, "out": tmp_path}
    result = train("ResNet@k=4", arrays, **settings)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "network   ResNet@k=4, 938 parameters"
    images = "200 images to train on, 50 to test on, 10 classes, 28 x 28 x 1, your own images"
    assert lines[1] == f"data      {result.run.data}: {images}"
    schedule = "lr rises to 0.1 at 25 % of the run and falls to 0"
    assert lines[2] == f"recipe    own,epochs=2,batch=50,flip=False: 2 epochs of 4 steps of 50 images, {schedule}"
    assert lines[3] == "device    cpu (1 thread), fp32, eager"
    last = result.epochs[-1]
    (said,) = (line for line in lines if line.startswith("epoch 2/2"))
    assert said.startswith(
        f"epoch 2/2  loss {last.loss:.4f}  train error {100 * last.training_error:.2f} %  test error "
    )
    assert said.endswith("  0:00 left")
    assert lines[-1] == f"test error {percent(result.error)}, in {result.folder}"

    train("ResNet@k=4", arrays, **settings)
    assert capsys.readouterr().out == (
        f"already trained: error {percent(result.error)}, in {result.folder}; again=True trains it once more\n"
    )
    monkeypatch.setattr("rkcnn.record.source.source_hash", lambda *_: "0123456789abcdef")
    train("ResNet@k=4", arrays, **settings)
    note = capsys.readouterr().out.splitlines()[1]
    assert note.startswith("note      2 of its epochs were computed by a different version of the code (commit ")
    train("ResNet@k=4", arrays, **{**settings, "epochs": 3}, validation=20)
    printed = capsys.readouterr().out
    assert "validation error" in printed
    assert "test error" not in printed


def test_of_several_runs_the_first_lines_are_printed_once_and_the_others_have_the_seed(
    arrays: Arrays, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = train("ResNet@k=4", arrays, seed=range(2), epochs=1, batch=50, out=tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["network", "data", "recipe", "device"]
    for result in results:
        said = [line for line in lines[4:] if line.startswith(f"seed {result.run.seed}  ")]
        assert sum("  epoch 1/1  loss " in line for line in said) == 1
        assert said[-1] == f"seed {result.run.seed}  test error {percent(result.error)}, in {result.folder}"
    assert all(line.startswith("seed ") for line in lines[4:])


def test_a_longer_run_says_where_it_continues(
    arrays: Arrays, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Any] = {"recipe": "mini", "milestones": (9,), "batch": 50, "out": tmp_path}
    train("ResNet@k=4", arrays, epochs=1, **settings)
    capsys.readouterr()
    train("ResNet@k=4", arrays, epochs=2, **settings)
    lines = capsys.readouterr().out.splitlines()
    assert "continues at epoch 2, step 1" in lines
    assert [line[:9] for line in lines if line.startswith("epoch")] == ["epoch 2/2"]


def test_a_run_that_diverges_says_so(arrays: Arrays, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        train("ResNet@k=4", arrays, epochs=9, batch=50, recipe="mini", lr=1e4, weight_decay=1e3, out=tmp_path)
        assert "diverged: the " in capsys.readouterr().out.splitlines()[-1]


def test_numbers_read_well() -> None:
    assert (percent(0.0131), percent(None)) == ("1.31 %", "-")
    assert (count(1, "epoch"), count(10_000, "image")) == ("1 epoch", "10,000 images")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0:00"),
        (65, "1:05"),
        (7384, "2:03:04"),
        (71 * 3600, "71:00:00"),
        (98.2 * 3600, "4 d 2 h"),
        (1e8, "1,157 d 9 h"),
    ],
)
def test_time_by_its_size(seconds: float, text: str) -> None:
    assert clock(seconds) == text
