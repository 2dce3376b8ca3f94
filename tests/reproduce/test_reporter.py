"""A corridor's news as events, by the places of its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rkcnn.data.load import load
from rkcnn.fit.recipe import recipe_of
from rkcnn.record.run import Run
from rkcnn.reproduce import reporter
from rkcnn.reproduce.event import Event
from rkcnn.reproduce.reporter import Reporter
from rkcnn.run.side_by_side import Execution, train_together


def test_a_run_from_its_beginning_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporter, "PAUSE", 0.0)
    run = Run("mnist-mini", "Identity@k=4", recipe_of("smoke", {"epochs": "2", "most_steps": "3"}), 0)
    told: list[Event] = []
    for _ in range(2):  # the second time it is found
        result = train_together(
            [run], *load("mnist-mini"), Execution(tmp_path, "cpu", "eager"), Reporter({run: 5}, told.append)
        )[run]
    assert {event.run for event in told} == {5}
    assert [event.what for event in told] == ["begins", *["moves"] * (len(told) - 3), "ends", "ends"]
    assert told[0].share == 0
    assert [event.share for event in told] == sorted(event.share for event in told)
    assert {round(6 * event.share) for event in told} == set(range(7)), "every step of six"
    assert told[-1] == told[-2] == Event("ends", 5, 1.0, result.error, "finished")
    assert next(event for event in told if event.share > 0.5).error == result.epochs[0].held_out_error
