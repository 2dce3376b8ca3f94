"""Prints lines to the terminal, to a file or to a pipe, whatever they hold and however the terminal encodes text."""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import suppress
from math import isfinite
from typing import IO, TYPE_CHECKING, Any

from rkcnn.error import shorten_message, with_flags
from rkcnn.escape import escape_text

if TYPE_CHECKING:
    from rich.console import Console

_IN_ASCII = {"±": "+-", "–": "-", "−": "-", "×": "x", "Δ": "d", "’": "'", "“": '"', "”": '"', "²": "2", "…": "..."}


_lost: list[OSError] = []  # of lines for standard output that `print_on` could not write


def print_line(line: str = "", *, flush: bool = False) -> None:
    """Print one line on standard output; control characters in it are shown escaped."""
    print(escape_text(line), flush=flush)


def print_error(sentence: str) -> None:
    """Print one sentence on standard error, with options spelled as on the command line."""
    said = escape_text(" ".join(with_flags(sentence).split()))
    try:
        print(f"rkcnn: {shorten_message(said)}", file=sys.stderr, flush=True)  # shortened here, since escapes are long
    except OSError:  # as on a full disk; the exit code still says that something failed
        discard(sys.stderr)


def with_null(value: Any) -> Any:
    """Return the value with None for every number that is not finite, because JSON has none of those."""
    match value:
        case float():
            return value if isfinite(value) else None
        case dict():
            return {name: with_null(inner) for name, inner in value.items()}
        case list() | tuple():
            return [with_null(inner) for inner in value]
    return value


def print_on(console: Console, line: str) -> None:
    """Print one line on a console that may show progress bars too.

    If it can't be written, as in a log on a full disk, work goes on without further lines; if they were for standard
    output, the end of the command says so (`end_output`).
    """
    try:
        console.print(escape_text(line), highlight=False, markup=False, soft_wrap=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        console.quiet = True
        if console.file is sys.stdout:
            _lost.append(error)
        else:
            discard(console.file)


def end_output(succeeded: bool) -> None:
    """Write what standard output still holds.

    If that fails, or if a line of it was lost before, OSError is raised where the command has succeeded; otherwise what
    went wrong before is what its user has to know.
    """
    failures = list(_lost)
    try:
        if sys.stdout is not None:  # it is None where the shell closed it: `>&-`
            sys.stdout.flush()
    except OSError as error:
        failures.append(error)
        discard(sys.stdout)
    if failures and succeeded:
        raise failures[0]


def discard(stream: IO[str]) -> None:
    """Let what a stream still holds go nowhere: Python writes it once more when it ends, and would fail again."""
    with suppress(OSError, ValueError):  # the latter for a stream without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def prepare_output() -> None:
    """Let standard output and standard error print text that their encoding lacks, instead of failing.

    In ASCII, as with LC_ALL=C, ± becomes +-; a character that has no such spelling becomes its number: \\u4e2d.
    Failures of an earlier command of this process are forgotten.
    """
    _lost.clear()
    codecs.register_error("rkcnn", _spell)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # None where the shell closed it; a notebook's streams have no encoding
            stream.reconfigure(errors="rkcnn")


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(character) or ascii(character)[1:-1] for character in unknown), error.end
