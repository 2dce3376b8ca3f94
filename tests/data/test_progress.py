"""Rate and time left."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest

from rkcnn.data.progress import Progress, describe


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_describes_done_rate_and_time_left() -> None:
    assert describe("a.gz", 30_000_000, 170_000_000, 2e6) == "a.gz: 30.0 of 170.0 MB, 2.0 MB/s, 1:10 left"
    assert describe("a.gz", 30_000_000, None, 2e6) == "a.gz: 30.0 MB, 2.0 MB/s"


def test_a_terminal_gets_one_line_a_log_gets_few(monkeypatch: pytest.MonkeyPatch) -> None:
    for out, shown, lines in ((Terminal(), 78, 1), (io.StringIO(), 5, 5)):
        clock = iter(number / 64 for number in range(2000))  # 15.6 s in all, from 0 as after a machine's start
        monkeypatch.setattr("rkcnn.data.progress.time", SimpleNamespace(monotonic=clock.__next__))
        progress = Progress(out)
        progress.start(0)
        for done in range(1001):
            progress.advance("a", done, 1000)
        assert out.getvalue().count("MB/s") == shown
        assert out.getvalue().count("\n") == lines


def test_nobody_asked_nobody_told() -> None:
    progress = Progress()
    progress.note("x")
    progress.advance("a", 1, 1)


def test_what_follows_a_live_line_has_its_own() -> None:
    for then in ("note", "start", "stop"):
        out = Terminal()
        progress = Progress(out)
        progress.start(0)
        progress.advance("a", 1, 1000)
        assert not out.getvalue().endswith("\n")
        {"note": lambda: progress.note("x"), "start": lambda: progress.start(0), "stop": progress.stop}[then]()  # noqa: B023
        progress.stop()
        assert out.getvalue().partition("\033[K")[2] == ("\nx\n" if then == "note" else "\n")
