"""Results of a table's networks by other recipes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from report.records import put_records, results_of
from rkcnn.record.tables import TABLES


def test_results_by_other_recipes_are_counted_apart(tmp_path: Path) -> None:
    put_records(tmp_path)
    put_records(tmp_path, {"ResNet@k=32": (0.005, 0.006)}, preset="fast")
    run = TABLES["mnist"].runs("paper", "ResNet@k=32", 1)[0]
    changed = replace(run, recipe=replace(run.recipe, lr=0.2))
    put_records(tmp_path / "own", {"ResNet@k=32": (0.005,)}, run=changed)
    assert results_of(tmp_path).others == {"fast-mnist": 2, "paper-mnist with fields overridden": 1}
    assert results_of(tmp_path, "mnist", "fast").others == {"paper-mnist": 24 + 1}
    assert results_of(tmp_path, "cifar10").others == {}
