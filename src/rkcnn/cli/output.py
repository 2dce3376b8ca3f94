"""Prints lines to the terminal, to a file or to a pipe, whatever they hold and however the terminal encodes text."""

from __future__ import annotations

import codecs
import sys
from math import isfinite
from typing import TYPE_CHECKING, Any

from rkcnn.error import shorten_message, with_flags
from rkcnn.escape import escape_text

if TYPE_CHECKING:
    from rich.console import Console

_IN_ASCII = {"±": "+-", "–": "-", "−": "-", "×": "x", "Δ": "d", "’": "'", "“": '"', "”": '"', "²": "2", "…": "..."}


def print_line(line: str = "", *, flush: bool = False) -> None:
    """Print one line on standard output; control characters in it are shown escaped."""
    print(escape_text(line), flush=flush)


def print_error(sentence: str) -> None:
    """Print one sentence on standard error, with options spelled as on the command line."""
    said = escape_text(" ".join(with_flags(sentence).split()))
    print(f"rkcnn: {shorten_message(said)}", file=sys.stderr, flush=True)  # escapes are longer than what they stand for


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
    """Print one line on a console that may show progress bars too."""
    console.print(escape_text(line), highlight=False, markup=False, soft_wrap=True)


def escape_unencodable_output() -> None:
    """Let standard output and standard error print text that their encoding lacks, instead of failing.

    In ASCII, as with LC_ALL=C, ± becomes +-; a character that has no such spelling becomes its number: \\u4e2d.
    """
    codecs.register_error("rkcnn", _spell)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # None where the shell closed it; a notebook's streams have no encoding
            stream.reconfigure(errors="rkcnn")


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(character) or ascii(character)[1:-1] for character in unknown), error.end
