"""rkcnn log: what it prints, and what it can't do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


def test_it_says_where_each_run_is(rkcnn: Run, trained: Path, tmp_path: Path) -> None:
    code, out, _ = rkcnn("log", str(trained), "--to", "tensorboard", "-o", str(tmp_path))
    assert code == 0
    assert out.startswith("logged    npz~")
    (path,) = tmp_path.rglob("events.*")
    assert out.endswith(f"seed-0: {path.parent}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("RUN", "--to", "board"),
            "no logger 'board' (did you mean tensorboard?); loggers are tensorboard, wandb",
        ),
        (("--to", "tensorboard"), "no runs given; name the folders of finished runs, or a folder that holds some"),
        (("nowhere", "--to", "tensorboard"), "no folder nowhere here; name the folders of finished runs, or a folder"),
    ],
)
def test_bad_input_is_one_sentence_and_code_two(
    rkcnn: Run, trained: Path, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = rkcnn("log", *(str(trained) if each == "RUN" else each for each in arguments))
    assert (code, out) == (2, "")
    assert err.startswith(f"rkcnn: {said}")
    assert err.count("\n") == 1


def test_a_damaged_record_is_named_and_the_others_are_sent(rkcnn: Run, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "runs" / "good")
    (tmp_path / "runs" / "bad").mkdir()
    (tmp_path / "runs" / "bad" / "result.json").write_bytes(b"[" * 200_000)
    code, out, err = rkcnn("log", str(tmp_path / "runs"), "--to", "tensorboard", "-o", str(tmp_path / "board"))
    assert (code, out.count("logged"), err.count("\n")) == (1, 1, 1)
    assert err.startswith(f"rkcnn: {tmp_path / 'runs' / 'bad' / 'result.json'} can't be read as a result of rkcnn: it ")


def test_a_folder_whose_name_is_no_utf_8_is_one_sentence(rkcnn: Run, trained: Path, tmp_path: Path) -> None:
    output = str(tmp_path / "\udcff")
    code, out, err = rkcnn("log", str(trained), "--to", "tensorboard", "-o", output)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert r"\udcff has bytes that are no UTF-8, which tensorboard can't write to; name another --output" in err
    assert not list(tmp_path.iterdir())
