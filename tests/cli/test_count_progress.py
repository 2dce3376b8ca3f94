"""A count on a terminal and in a log."""

from __future__ import annotations

import io

import pytest

from rkcnn.cli.count_progress import CountProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_a_terminal_has_one_line_that_goes_away(clock: list[float]) -> None:
    out = Terminal()
    progress = CountProgress(out, "pictures")
    for done, clock[0] in ((1, 0.5), (1500, 2.0), (1600, 2.1), (2000, 2.5)):
        progress.show(done, 3000)
    assert out.getvalue() == "\r1,500 of 3,000 pictures\033[K\r2,000 of 3,000 pictures\033[K"
    progress.clear()
    assert out.getvalue().endswith("\r\033[K")


def test_a_log_has_a_line_now_and_then(clock: list[float]) -> None:
    out = io.StringIO()
    progress = CountProgress(out, "pictures")
    for done, clock[0] in ((1, 2.0), (2, 5.0), (3, 13.0)):
        progress.show(done, 3)
    progress.clear()
    assert out.getvalue() == "3 of 3 pictures\n"


def test_short_work_and_nobody_to_read_it_say_nothing(clock: list[float]) -> None:
    out = Terminal()
    for progress in (CountProgress(out, "pictures"), CountProgress(None, "pictures")):
        clock[0] += 0.9
        progress.show(1, 2)
        progress.clear()
    assert out.getvalue() == ""
