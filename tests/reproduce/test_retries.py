"""A run that makes progress is tried again each time; one that does not is given up."""

from __future__ import annotations

from pathlib import Path

from rkcnn.reproduce.events import Event
from rkcnn.reproduce.retries import MOST_CRASHES, Retries

WHY = "its process died with exit code -9"


def test_a_run_without_progress_is_given_up(tmp_path: Path) -> None:
    retries = Retries()
    (tmp_path / "checkpoint-00000-000003.json").touch()
    for _ in range(1 + MOST_CRASHES - 1):  # the first attempt made a checkpoint, the others did not
        assert retries.after_crash(7, 0.5, WHY, tmp_path) == Event(
            "crashes", 7, 0.5, message=f"{WHY}; the run continues from its last checkpoint"
        )
    assert retries.after_crash(8, 0.5, WHY, tmp_path).kind == "crashes"  # each has its own count
    why = f"{WHY}; 3 attempts in a row made no new checkpoint"
    assert retries.after_crash(7, 0.5, WHY, tmp_path) == Event("fails", 7, message=why)


def test_a_run_with_progress_is_not(tmp_path: Path) -> None:
    retries = Retries()
    for step in range(3 * MOST_CRASHES):
        if step % 2:
            (tmp_path / f"checkpoint-00000-{step:06d}.json").touch()
        assert retries.after_crash(0, 0.0, WHY, tmp_path).kind == "crashes"
