"""The error that a user is meant to read: its length, how it names an option, and what a misspelt word may mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_WORD = 100  # characters of a name in a message
LONGEST_PATH = 200  # characters of a word with a slash
SHORTEST_WORD = 48  # characters of either that are left where the message is too long with more
USUAL_MESSAGE = 300  # characters that a message with long names is shortened to
LONGEST_MESSAGE = 450  # characters; as many have the longest of our own, which list what would work
_WORD = re.compile(r"\S+")
_PATH = re.compile(r"\S*/(?:[^/:;,()\[\]]*/)*\S*|\S+")  # the names of its folders may have spaces


class InputError(ValueError):
    """Something given to rkcnn can't be used.

    The message is one sentence that says what is wrong, what was given and what would work. It names an option as
    Python writes it, in backticks: `split=0.2`. The command line prints the message with its own spelling of the
    option, --split 0.2 (see `with_flags`), and exits with code 2.

    Names and values from outside may be of any length; the message holds the two ends of a long one (see `shorten`).
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(shorten_message(message))


def shorten(text: str, limit: int = LONGEST_WORD) -> str:
    """Return `text`, or its beginning and its end with " ... " between them if it has more than `limit` characters."""
    if len(text) <= limit:
        return text
    kept = max(limit - 5, 2)
    return f"{text[: kept - kept // 2]} ... {text[len(text) - kept // 2 :]}"


def shorten_message(message: str) -> str:
    """Return a message with its long words shortened, and shortened more where it is still longer than usual.

    A path with spaces counts as one word where shorter words are not enough. Last, the whole message is shortened.
    """
    shortened = _shorten_words(message, _WORD, LONGEST_WORD, LONGEST_PATH)
    for pattern in (_WORD, _PATH):
        for limit in (LONGEST_WORD, 2 * LONGEST_WORD // 3, SHORTEST_WORD):
            if len(shortened) > USUAL_MESSAGE:
                shortened = _shorten_words(message, pattern, limit, limit)
    return shorten(shortened, LONGEST_MESSAGE)


def _shorten_words(message: str, pattern: re.Pattern[str], name: int, path: int) -> str:
    """Return a message whose words, or paths, have at most so many characters."""
    return pattern.sub(lambda word: shorten(word[0], path if "/" in word[0] else name), message)


def with_flags(message: str) -> str:
    """Return `message` with every option in backticks spelled as on the command line.

    `skip_bad=True` becomes --skip-bad, `split=0.2` becomes --split 0.2, and `out=...`, which names the option without a
    value, becomes --out. Other text in backticks stays as it is.
    """
    return re.sub(r"`([a-z]\w*)=([^`]*)`", lambda option: _flag(*option.groups()), message)


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Return " (did you mean X?)", where X is the known word that is most similar to `word`, or "" if none is similar.

    Upper and lower case count as the same. `cutoff`, from 0 to 1, is the least similarity (`difflib`).
    """
    folded = {each.lower(): each for each in known if each}
    near = get_close_matches(word.lower(), folded, n=1, cutoff=cutoff) if word else []
    return f" (did you mean {folded[near[0]]}?)" if near else ""


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    return f"pip install --constraint constraints.txt --editable '.[{extra}]' in the checkout"


def is_out_of_memory(error: MemoryError | RuntimeError) -> bool:
    """Whether Python, or torch on a CPU or GPU, got no memory."""
    texts = ("allocate memory", "not enough memory", "out of memory")
    return isinstance(error, MemoryError) or any(text in str(error) for text in texts)


def _flag(name: str, value: str) -> str:
    name = name.replace("_", "-")
    if value == "False":
        return f"--no-{name}"
    return f"--{name}" if value in ("True", "...") else f"--{name} {value}"
