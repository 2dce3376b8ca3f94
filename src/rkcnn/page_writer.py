"""Runs what writes a page of the documentation, as in `python -m rkcnn.report.bench`; errors are one sentence there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from rkcnn.error import InputError, shorten_message
from rkcnn.escape import escape_text


def run_writer(write: Callable[..., Iterable[str]], arguments: Sequence[str], defaults: Sequence[str]) -> int:
    """Call `write` with the arguments of a command, and with `defaults` for those that aren't given.

    It returns sentences on what it had to leave out, which are printed on standard error. Returns the exit code: 1 if
    there are any, and 2, with one sentence, if it raised InputError.
    """
    try:
        if len(arguments) > len(defaults):
            raise InputError(f"{len(arguments)} names given; {len(defaults)} are used, by default {' '.join(defaults)}")
        troubles = list(write(*arguments, *defaults[len(arguments) :]))
    except InputError as error:
        _complain(str(error))
        return 2
    for sentence in troubles:
        _complain(sentence)
    return 1 if troubles else 0


def _complain(sentence: str) -> None:
    print(f"rkcnn: {shorten_message(escape_text(sentence))}", file=sys.stderr)
