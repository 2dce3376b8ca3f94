"""How far a run has come, by its folder."""

from __future__ import annotations

from pathlib import Path

from outcome import outcome
from rkcnn.record.run import read_run
from rkcnn.record.standing import BEGUN, NEW, standing


def test_new_begun_and_done(tmp_path: Path) -> None:
    result = outcome()
    run = read_run(result.run)
    assert standing(run, tmp_path) == NEW
    folder = tmp_path / run.folder
    folder.mkdir(parents=True)
    assert standing(run, tmp_path) == NEW
    (folder / "checkpoint-00001-000000.json").write_text("{}")
    assert standing(run, tmp_path) == BEGUN
    (folder / "result.json").write_bytes(result.to_json())
    assert standing(run, tmp_path) == result
