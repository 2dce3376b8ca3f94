"""Which code made a result."""

from __future__ import annotations

import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
ROOMS = ("solvers", "model", "data", "fit", "evaluation", "run")  # what can change a number


@cache
def source_hash() -> str:
    """Of every Python file that can change a number, in order of their names."""
    digest = hashlib.sha256()
    for path in sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def commit() -> str | None:
    """What RKCNN_COMMIT says of a copy, else the checkout's commit, with + if it has changes; None outside one."""
    if said := os.environ.get("RKCNN_COMMIT"):
        return said
    try:
        _git("ls-files", "--error-unmatch", "--", "record/source.py")  # a .venv lies in another project's checkout
        return _git("rev-parse", "--short=12", "HEAD") + "+" * bool(_git("status", "--porcelain", "--", "."))
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*command: str) -> str:
    return subprocess.run(
        ["git", "-C", str(PACKAGE), *command], capture_output=True, text=True, check=True
    ).stdout.strip()
