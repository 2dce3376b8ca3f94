"""What is told of runs on their way, by whoever trains them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Event:
    """News of one run: it begins, moves, ends (with a result, be it that it diverged) or fails (without one).

    It dies when its process did and it shall be tried again. It is busy, said once, while another process has it. It
    is silent when the process that trains it, perhaps with others after it, was not heard of for long.
    """

    what: str
    run: int  # its place in the list of runs
    share: float = 0.0  # of its steps that are done
    error: float | None = None  # on the test images, after the last whole epoch
    text: str = ""  # a note, how it ended, why it failed or died, who has it

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def read_event(line: str) -> Event:
    return Event(**json.loads(line))


def fail(run: int, error: Exception) -> Event:
    """It fails by that error, said in one line."""
    return Event("fails", run, text=" ".join(f"{error}".split()) or type(error).__name__)
