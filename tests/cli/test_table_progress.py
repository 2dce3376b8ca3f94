"""How far a table is, and how long is left."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rkcnn.cli import table_progress as module
from rkcnn.cli.table_progress import TableProgress
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.run import Run
from rkcnn.reproduce.events import Event

RUNS = [Run("mnist-mini", spec, find_recipe("smoke"), 0) for spec in ("ResNet@k=4", "RKCNN-R-2@k=4", "Identity@k=4")]


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def lines_of(shown: TableProgress) -> list[str]:
    file = shown.console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue().splitlines()


def make(terminal: bool = False) -> TableProgress:
    return TableProgress(Console(file=io.StringIO(), force_terminal=terminal, width=100), RUNS, [1.0, 2.0, 1.0])


def test_time_left_follows_from_the_weights_and_from_what_was_done_now(clock: Clock) -> None:
    """Half of the second run was done before: ten seconds for a weight of 1 leave twenty for 2."""
    shown = make()
    shown.show(Event("begins", 0))
    shown.show(Event("begins", 1, 0.5))
    clock.now += 10
    shown.show(Event("advances", 0, 0.5, 0.9))
    shown.show(Event("advances", 1, 0.75, 0.9))
    assert shown.fraction == pytest.approx(0.5)
    assert shown.status() == "0 of 3 runs, 50 %, 0:20 left"
    shown.show(Event("ends", 0, 1.0, 0.25, "finished"))
    assert shown.status().startswith("1 of 3 runs, 62 %")
    assert "begins    RKCNN-R-2@k=4  seed 0, continues at 50 %" in lines_of(shown)
    assert "ends      ResNet@k=4  seed 0  error 25.00 %" in lines_of(shown)


def test_a_run_that_fails_is_shown_and_leaves_no_time(clock: Clock) -> None:
    shown = make()
    shown.show(Event("begins", 0))
    clock.now += 10
    shown.show(Event("ends", 0, 0.02, None, "diverged: the loss is not finite at epoch 1, step 3, lr 0.1"))
    shown.show(Event("fails", 1, message="no room on the disk"))
    assert "ends      ResNet@k=4  seed 0  diverged: the loss is not finite at epoch 1, step 3, lr 0.1" in lines_of(
        shown
    )
    assert "FAILS     RKCNN-R-2@k=4  seed 0  no room on the disk" in lines_of(shown)
    assert shown.failed == {1: "no room on the disk"}
    assert shown.fraction == pytest.approx(0.25)
    shown.show(Event("begins", 2))
    clock.now += 10
    shown.show(Event("advances", 2, 0.48))
    assert shown.status() == "1 of 3 runs, 37 %, 0:21 left"  # half a run in twenty seconds, and 0.52 left


def test_a_continued_run_that_fails_does_not_shorten_the_time_left(clock: Clock) -> None:
    shown = make()
    shown.show(Event("begins", 0))
    shown.show(Event("begins", 1, 0.9))
    clock.now += 10
    shown.show(Event("fails", 1, message="no room on the disk"))
    shown.show(Event("advances", 0, 0.5))
    assert shown.status() == "0 of 3 runs, 12 %, 0:30 left"


def test_one_that_begins_again_has_one_bar(clock: Clock) -> None:
    with make(terminal=True) as shown:
        shown.show(Event("begins", 0))
        shown.show(Event("advances", 0, 0.5))
        shown.show(Event("crashes", 0, 0.5))
        shown.show(Event("begins", 0, 0.4))
        assert len(shown._bars) == len(shown._progress.tasks) - 1 == 1
        shown.show(Event("ends", 0, 1.0, 0.25, "finished"))
        assert len(shown._progress.tasks) == 1


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            Event("busy", 1, message="process 12 is training it"),
            "busy      RKCNN-R-2@k=4  seed 0  process 12 is training it",
        ),
        (Event("silent", 0), "silent    ResNet@k=4  seed 0  nothing was reported for ten minutes"),
        (
            Event("crashes", 0),
            "crashes   ResNet@k=4  seed 0  its process died; the run continues from its last checkpoint",
        ),
    ],
)
def test_what_is_shown_of_runs_in_trouble(event: Event, line: str) -> None:
    shown = make()
    shown.show(event)
    assert lines_of(shown)[0].startswith(line)


def test_a_log_on_a_full_disk_stops_nothing(clock: Clock) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    shown = TableProgress(Console(file=Full(), width=100), RUNS, [1.0, 2.0, 1.0])
    shown.show(Event("begins", 0))
    shown.show(Event("ends", 0, 1.0, 0.25, "finished"))
    assert shown.ended == {0: "finished"}


def test_a_log_gets_a_line_about_the_whole_table_every_half_minute(clock: Clock) -> None:
    shown = make()
    shown.show(Event("begins", 0))
    for _ in range(10):
        clock.now += 10
        shown.show(Event("advances", 0, 0.1))
    assert len([line for line in lines_of(shown) if line.endswith("left")]) == 2


def test_a_terminal_shows_bars(clock: Clock) -> None:
    with make(terminal=True) as shown:
        shown.show(Event("begins", 0))
        clock.now += 5
        shown.show(Event("advances", 0, 0.5, 0.125))
    assert "error 12.50 %" in "".join(lines_of(shown))
