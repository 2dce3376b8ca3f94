"""One that comes further is tried for ever, one that does not is given up."""

from __future__ import annotations

from pathlib import Path

from rkcnn.reproduce.event import Event
from rkcnn.reproduce.retries import DEATHS, Retries

WHY = "its process died with exit code -9"


def test_one_that_comes_no_further_is_given_up(tmp_path: Path) -> None:
    deaths = Retries()
    (tmp_path / "checkpoint-00000-000003.json").touch()
    for _ in range(1 + DEATHS - 1):  # the first attempt came somewhere, those after it no further
        assert deaths.judge(7, 0.5, WHY, tmp_path) == Event(
            "dies", 7, 0.5, text=f"{WHY}; it goes on from its last checkpoint"
        )
    assert deaths.judge(8, 0.5, WHY, tmp_path).what == "dies"  # each has its own count
    assert deaths.judge(7, 0.5, WHY, tmp_path) == Event("fails", 7, text=f"{WHY}; it came no further in 3 attempts")


def test_one_that_comes_further_is_not(tmp_path: Path) -> None:
    deaths = Retries()
    for step in range(3 * DEATHS):
        if step % 2:
            (tmp_path / f"checkpoint-00000-{step:06d}.json").touch()
        assert deaths.judge(0, 0.0, WHY, tmp_path).what == "dies"
