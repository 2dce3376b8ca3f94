"""Events and retries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rkcnn.data.load import load_data_set
from rkcnn.error import InputError
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.run import Run
from rkcnn.reproduce import events
from rkcnn.reproduce.events import MOST_CRASHES, Event, Reporter, Retries, failure, read_event
from rkcnn.run.side_by_side import Execution, train_side_by_side


@given(st.integers(0, 100), st.floats(0, 1), st.none() | st.floats(0, 1), st.text())
def test_an_event_is_a_line(run: int, fraction: float, error: float | None, text: str) -> None:
    event = Event("advances", run, fraction, error, text)
    assert len(event.to_json().splitlines()) == 1
    assert read_event(event.to_json()) == event


def test_a_failure_is_said_in_one_line() -> None:
    assert failure(3, InputError("no room\n  on the disk")) == Event("fails", 3, message="no room on the disk")
    assert failure(3, MemoryError()).message == "MemoryError"


def test_a_run_is_reported_from_beginning_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "REPORT_SECONDS", 0.0)
    run = Run("mnist-mini", "Identity@k=4", replace(find_recipe("smoke"), epochs=2, max_steps_per_epoch=3), 0)
    reported: list[Event] = []
    for _ in range(2):  # the second time it is found
        result = train_side_by_side(
            [run],
            *load_data_set("mnist-mini"),
            Execution(tmp_path, "cpu", "eager"),
            Reporter({run: 5}, reported.append),
        )[run]
    assert {event.index for event in reported} == {5}
    assert [event.kind for event in reported] == ["begins", *["advances"] * (len(reported) - 3), "ends", "ends"]
    assert reported[0].fraction == 0
    assert [event.fraction for event in reported] == sorted(event.fraction for event in reported)
    assert {round(6 * event.fraction) for event in reported} == set(range(7)), "every step of six"
    assert reported[-1] == reported[-2] == Event("ends", 5, 1.0, result.error, "finished")
    assert next(event for event in reported if event.fraction > 0.5).error == result.epochs[0].held_out_error


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
