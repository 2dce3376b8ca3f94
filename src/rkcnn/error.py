"""The error that a user is meant to read: its length, how it names an option, and what a misspelt word may mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_WORD = 100  # characters of a name in a message
LONGEST_PATH = 200  # characters of a word with a slash
SHORTEST_WORD = 40  # characters of either that are left where the message is too long with more
USUAL_MESSAGE = 300  # characters that a message with long names is shortened to
LONGEST_MESSAGE = 450  # characters; as many have the longest of our own, which list what would work
DOTS = " ... "  # stands for what was left out
MOST_ALIKE = 8  # so many names that look alike are told apart; the time that it takes grows with their square
STEP = 4  # characters by which all names are shortened more until the message fits
_WORD = re.compile(r"\S+")
_PATH = re.compile(r"\S*/(?:[^/:;,()\[\]]*/)*\S*|\S+")  # the names of its folders may have spaces
_PUNCTUATED = re.compile(r"""([`'"(\[]{0,2})(.*?)([`'")\].,:;]{0,3})""", re.DOTALL)  # a name with what stands around it


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
    kept = max(limit - len(DOTS), 2)
    return f"{text[: kept - kept // 2]}{DOTS}{text[len(text) - kept // 2 :]}"


def shorten_message(message: str) -> str:
    """Return a message with its long words shortened, and shortened more where it is still longer than usual.

    A message with no long words, and none that were shortened before, is left as it is unless it is longer than any of
    our own. Words that differ still differ when they are shortened (see `_shorten_apart`). A path with spaces counts as
    one word where shorter words are not enough. Last, the whole message is shortened.
    """
    shortened = _shorten_words(message, _WORD, LONGEST_WORD, LONGEST_PATH)
    if shortened == message and DOTS not in message and len(message) <= LONGEST_MESSAGE:
        return message
    for pattern in (_WORD, _PATH):
        for limit in range(LONGEST_WORD, SHORTEST_WORD - 1, -STEP):
            if len(shortened) > USUAL_MESSAGE:
                shortened = _shorten_words(message, pattern, limit, limit)
        message = shortened  # whose words are as short as they may be, if that is not enough
    return shorten(shortened, LONGEST_MESSAGE)


def _shorten_words(message: str, pattern: re.Pattern[str], name: int, path: int) -> str:
    """Return a message whose words, or paths, have at most so many characters and the punctuation around them."""
    cores = {_split(word[0])[1] for word in pattern.finditer(message)}
    shown = {core: shorten(core, path if "/" in core else name) for core in cores}
    for core, others in _find_lookalikes(shown).items():
        shown[core] = _shorten_apart(core, others, len(shown[core]))

    def replace(word: re.Match[str]) -> str:
        before, core, after = _split(word[0])
        return f"{before}{shown[core]}{after}"

    return pattern.sub(replace, message)


def _split(word: str) -> tuple[str, str, str]:
    """Return the punctuation before a name, the name, and the punctuation after it."""
    found = _PUNCTUATED.fullmatch(word)
    return (found[1], found[2], found[3]) if found else ("", word, "")


def _find_lookalikes(shown: dict[str, str]) -> dict[str, list[str]]:
    """Return each name that is shortened and then shown as a few others are, with those others."""
    groups: dict[str, list[str]] = {}
    for core, text in shown.items():
        groups.setdefault(text, []).append(core)
    few = [group for group in groups.values() if 1 < len(group) <= MOST_ALIKE]
    return {core: [each for each in group if each != core] for group in few for core in group if core != shown[core]}


def _shorten_apart(text: str, others: Iterable[str], limit: int) -> str:
    """Return the beginning of `text`, the place from which it differs from the most similar of others, and its end."""
    differs = max(_count_common(text, other) for other in others)
    part = (limit - 2 * len(DOTS)) // 3  # DOTS stand between the three parts
    start = max(part, min(differs - part // 4, len(text) - 2 * part))
    return f"{text[:part]}{DOTS}{text[start : start + part]}{DOTS}{text[len(text) - part :]}"


def _count_common(one: str, two: str) -> int:
    """Return how many characters both begin with."""
    shorter = min(len(one), len(two))
    return next((i for i in range(shorter) if one[i] != two[i]), shorter)


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
