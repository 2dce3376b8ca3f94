"""How far a table has come, and how long is left."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rkcnn.cli import table_progress as module
from rkcnn.cli.table_progress import Board
from rkcnn.fit.recipe import recipe_of
from rkcnn.record.run import Run
from rkcnn.reproduce.event import Event

RUNS = [Run("mnist-mini", spec, recipe_of("smoke"), 0) for spec in ("ResNet@k=4", "RKCNN-R-2@k=4", "Identity@k=4")]


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def told(board: Board) -> list[str]:
    file = board.console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue().splitlines()


def make(terminal: bool = False) -> Board:
    return Board(Console(file=io.StringIO(), force_terminal=terminal, width=100), RUNS, [1.0, 2.0, 1.0])


def test_time_left_goes_by_the_weights_and_by_what_was_done_here(clock: Clock) -> None:
    """Half of the second run was done before: ten seconds for a weight of 1 leave twenty for 2."""
    board = make()
    board.hear(Event("begins", 0))
    board.hear(Event("begins", 1, 0.5))
    clock.now += 10
    board.hear(Event("moves", 0, 0.5, 0.9))
    board.hear(Event("moves", 1, 0.75, 0.9))
    assert board.share == pytest.approx(0.5)
    assert board.news() == "0 of 3 runs, 50 %, 0:20 left"
    board.hear(Event("ends", 0, 1.0, 0.25, "finished"))
    assert board.news().startswith("1 of 3 runs, 62 %")
    assert "begins    RKCNN-R-2@k=4  seed 0, continues at 50 %" in told(board)
    assert "ends      ResNet@k=4  seed 0  error 25.00 %" in told(board)


def test_what_fails_is_said_and_leaves_nothing_to_wait_for(clock: Clock) -> None:
    board = make()
    board.hear(Event("begins", 0))
    clock.now += 10
    board.hear(Event("ends", 0, 0.02, None, "diverged: the loss is not finite at epoch 1, step 3, lr 0.1"))
    board.hear(Event("fails", 1, text="no room on the disk"))
    assert "ends      ResNet@k=4  seed 0  diverged: the loss is not finite at epoch 1, step 3, lr 0.1" in told(board)
    assert "FAILS     RKCNN-R-2@k=4  seed 0  no room on the disk" in told(board)
    assert board.failed == {1: "no room on the disk"}
    assert board.share == pytest.approx(0.25)
    board.hear(Event("begins", 2))
    clock.now += 10
    board.hear(Event("moves", 2, 0.48))
    assert board.news() == "1 of 3 runs, 37 %, 0:21 left"  # half a run in twenty seconds, and 0.52 left


def test_a_run_that_went_on_and_fails_takes_no_time_away(clock: Clock) -> None:
    board = make()
    board.hear(Event("begins", 0))
    board.hear(Event("begins", 1, 0.9))
    clock.now += 10
    board.hear(Event("fails", 1, text="no room on the disk"))
    board.hear(Event("moves", 0, 0.5))
    assert board.news() == "0 of 3 runs, 12 %, 0:30 left"


def test_one_that_begins_again_has_one_bar(clock: Clock) -> None:
    with make(terminal=True) as board:
        board.hear(Event("begins", 0))
        board.hear(Event("moves", 0, 0.5))
        board.hear(Event("dies", 0, 0.5))
        board.hear(Event("begins", 0, 0.4))
        assert len(board._bars) == len(board._progress.tasks) - 1 == 1
        board.hear(Event("ends", 0, 1.0, 0.25, "finished"))
        assert len(board._progress.tasks) == 1


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Event("busy", 1, text="process 12 has it"), "busy      RKCNN-R-2@k=4  seed 0  process 12 has it"),
        (Event("silent", 0), "silent    ResNet@k=4  seed 0  nothing was heard for ten minutes"),
        (Event("dies", 0), "dies      ResNet@k=4  seed 0  its process died; it goes on from its last checkpoint"),
    ],
)
def test_what_is_told_on_the_way(event: Event, line: str) -> None:
    board = make()
    board.hear(event)
    assert told(board)[0].startswith(line)


def test_a_log_on_a_full_disk_stops_nothing(clock: Clock) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    board = Board(Console(file=Full(), width=100), RUNS, [1.0, 2.0, 1.0])
    board.hear(Event("begins", 0))
    board.hear(Event("ends", 0, 1.0, 0.25, "finished"))
    assert board.ended == {0: "finished"}


def test_a_log_gets_a_line_on_the_whole_now_and_then(clock: Clock) -> None:
    board = make()
    board.hear(Event("begins", 0))
    for _ in range(10):
        clock.now += 10
        board.hear(Event("moves", 0, 0.1))
    assert len([line for line in told(board) if line.endswith("left")]) == 2


def test_a_terminal_shows_bars(clock: Clock) -> None:
    with make(terminal=True) as board:
        board.hear(Event("begins", 0))
        clock.now += 5
        board.hear(Event("moves", 0, 0.5, 0.125))
    assert "error 12.50 %" in "".join(told(board))
