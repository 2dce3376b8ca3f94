"""How far a bench is, on a terminal and in a log."""

from __future__ import annotations

import io

import pytest

from rkcnn.cli.bench_progress import BenchProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [100.0]
    monkeypatch.setattr("rkcnn.cli.bench_progress.time.monotonic", lambda: time[0])
    return time


def test_a_terminal_shows_each_turn_with_the_time_left(now: list[float]) -> None:
    out = Terminal()
    progress = BenchProgress(out)
    progress.show("preparing a", None, 2)
    now[0] = 150.0
    progress.show("a", 0, 6)
    now[0] = 160.0
    progress.show("b", 1, 6)
    progress.clear()
    assert out.getvalue() == (
        "\rpreparing a\033[K\r0 of 6: a\033[K\r1 of 6, 0:50 left: b\033[K\r\033[K"  # 10 s for one, five are left
    )


def test_a_log_has_what_is_prepared_and_then_a_line_every_ten_seconds(now: list[float]) -> None:
    out = io.StringIO()
    progress = BenchProgress(out)
    progress.show("preparing a", None, 2)
    for turn in range(1, 13):
        now[0] += 1
        progress.show("turn", turn, 20)
    progress.clear()
    assert out.getvalue().splitlines() == ["preparing a", "10 of 20, 0:09 left: turn"]


def test_a_closed_stream_is_no_error() -> None:
    BenchProgress(None).show("a", 1, 2)
