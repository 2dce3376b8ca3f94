"""How far a run has come, by its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from outcome import outcome
from rkcnn.error import InputError
from rkcnn.record.standing import BEGUN, NEW, standing


def test_new_begun_and_done(tmp_path: Path) -> None:
    result = outcome()
    run = result.run
    assert standing(run, tmp_path) == NEW
    folder = tmp_path / run.folder
    folder.mkdir(parents=True)
    assert standing(run, tmp_path) == NEW
    (folder / "checkpoint-00001-000000.json").write_text("{}")
    assert standing(run, tmp_path) == BEGUN
    (folder / "result.json").write_bytes(result.to_json())
    assert standing(run, tmp_path) == result


def test_a_result_of_another_recipe_is_not_this_runs(tmp_path: Path) -> None:
    result = outcome()
    run = result.run
    folder = tmp_path / run.folder
    folder.mkdir(parents=True)
    other = replace(run, recipe=replace(run.recipe, lr=0.05))
    (folder / "result.json").write_bytes(replace(result, run=other).to_json())
    with pytest.raises(InputError, match=r"is of another run, made by mini,epochs=3,lr=0\.05; move it away"):
        standing(run, tmp_path)
