"""Between tasks anywhere and their driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # its process needs no torch
    from rkcnn.reproduce.parcel import Parcel


class Mailbox:
    """What was sent and is not yet fetched: events as JSON and, of each run, the newest checkpoint.

    As an actor on the driver's machine it outlives every machine that may die without the driver.
    """

    def __init__(self) -> None:
        self._events: list[str] = []
        self._checkpoints: dict[int, Parcel] = {}

    def tell(self, event: str) -> None:
        self._events.append(event)

    def keep(self, run: int, checkpoint: Parcel) -> None:
        self._checkpoints[run] = checkpoint

    def fetch(self) -> tuple[list[str], dict[int, Parcel]]:
        """All of it, once."""
        mail = self._events, self._checkpoints
        self._events, self._checkpoints = [], {}
        return mail
