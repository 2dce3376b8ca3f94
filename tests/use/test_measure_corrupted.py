"""The error on corrupted images."""

from __future__ import annotations

from rkcnn.evaluation.corruption import corrupt
from rkcnn.use.evaluate import evaluate
from rkcnn.use.images import load_images
from rkcnn.use.load import load
from rkcnn.use.measure_corrupted import measure_corrupted
from rkcnn.use.result import TrainingResult
from use.conftest import Arrays


def test_every_kind_and_grade_is_measured_once(trained: TrainingResult, arrays: Arrays) -> None:
    test, model = load_images(arrays)[1], load(trained.folder)
    seen: list[tuple[int, int]] = []
    clean, errors = measure_corrupted(model, test, "cpu", lambda done, total: seen.append((done, total)))
    assert clean == trained.error
    assert seen == [(done, 21) for done in range(1, 22)]
    assert {kind: len(grades) for kind, grades in errors.items()} == dict.fromkeys(
        ("noise", "blur", "contrast", "shift"), 5
    )
    assert errors["blur"][4] == evaluate(model, corrupt(test, "blur", 5)).error
