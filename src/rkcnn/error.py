"""The error that a user is meant to read, and how its message names an option."""

from __future__ import annotations

import re


class InputError(ValueError):
    """Something given to rkcnn can't be used.

    The message is one sentence that says what is wrong, what was given and what would work. It names an option as
    Python writes it, in backticks: `split=0.2`. The command line prints the message with its own spelling of the
    option, --split 0.2 (see `with_flags`), and exits with code 2.
    """


def with_flags(message: str) -> str:
    """Return `message` with every option in backticks spelled as on the command line.

    `skip_bad=True` becomes --skip-bad, `split=0.2` becomes --split 0.2, and `out=...`, which names the option without a
    value, becomes --out. Other text in backticks stays as it is.
    """
    return re.sub(r"`([a-z]\w*)=([^`]*)`", lambda option: _flag(*option.groups()), message)


def _flag(name: str, value: str) -> str:
    name = name.replace("_", "-")
    if value == "False":
        return f"--no-{name}"
    return f"--{name}" if value in ("True", "...") else f"--{name} {value}"
