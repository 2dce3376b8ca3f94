"""The pace of a view in words: what isn't the paper's recipe says so on every output."""

from __future__ import annotations

_NOTES = {
    "fast": "FAST: our short recipe, not the paper's",
    "smoke": "SMOKE: 40 steps on a few digits, these numbers mean nothing",
}


def note_pace(pace: str) -> str | None:
    """None for the paper's own recipe."""
    return _NOTES.get(pace)
