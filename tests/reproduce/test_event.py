"""An event is a line, whatever is in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rkcnn.error import InputError
from rkcnn.reproduce.event import Event, fail, read_event


@given(st.integers(0, 100), st.floats(0, 1), st.none() | st.floats(0, 1), st.text())
def test_an_event_is_a_line(run: int, share: float, error: float | None, text: str) -> None:
    event = Event("moves", run, share, error, text)
    assert len(event.to_json().splitlines()) == 1
    assert read_event(event.to_json()) == event


def test_a_failure_is_said_in_one_line() -> None:
    assert fail(3, InputError("no room\n  on the disk")) == Event("fails", 3, text="no room on the disk")
    assert fail(3, MemoryError()).text == "MemoryError"
