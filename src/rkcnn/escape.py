"""Text from outside (names of networks, classes and files, records) made harmless where it is shown or written."""

from __future__ import annotations

import re

# What a terminal would obey or what can't be encoded: control characters (C0, DEL, C1), separators of lines and
# paragraphs, marks that reverse the direction of writing, and surrogates, which stand for bytes that are no UTF-8.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_MARKDOWN = re.compile(
    r"(?P<code>`\w[\w.,=@*~ -]*`)"  # a piece of code that holds nothing else
    r"|[\\*~|`]"
    r"|(?P<html><)(?=[A-Za-z/!?])"
    r"|(?P<entity>&)(?=#?\w+;)"
    r"|(?<=\])[(:\[]"  # [text](address), [text][name] and [name]: address
    r"|^[#>+=-]"  # headings, quotes and lists
)
_FORMULA = ("=", "+", "-", "@")


def is_unicode(text: str) -> bool:
    """Whether text can be written as UTF-8; in the name of a file surrogates stand for bytes that are no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def escape_text(text: str) -> str:
    r"""Return text as one line that can be printed anywhere, with \n for a line's end and \x1b for an escape code."""
    return _UNSEEN.sub(_spell, text)


def escape_markdown(text: str) -> str:
    """Return text as one line that Markdown shows as it is; code in backticks stays code if it is plain words."""
    return _MARKDOWN.sub(_quote, escape_text(text))


def escape_code(text: str) -> str:
    """Return text as a piece of code in backticks, also for a cell of a Markdown table."""
    return f"`{escape_text(text).replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def escape_formula(text: str) -> str:
    """Return text for a cell of a CSV file; a spreadsheet would compute one that begins with =, +, - or @."""
    return "'" * text.startswith(_FORMULA) + escape_text(text)


def _spell(character: re.Match[str]) -> str:
    return ascii(character[0])[1:-1]


def _quote(found: re.Match[str]) -> str:
    if found["code"]:
        return found["code"]
    if found["html"]:
        return "&lt;"
    return "&amp;" if found["entity"] else f"\\{found[0]}"
