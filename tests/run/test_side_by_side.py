"""Being asked to stop by Ctrl-C or SIGTERM."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from rkcnn.run.side_by_side import stop_signals


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Give the process its own handlers back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_is_collected_and_the_second_interrupts(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_signals() as received:
        os.kill(os.getpid(), number)
        assert received == [number.name]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before
