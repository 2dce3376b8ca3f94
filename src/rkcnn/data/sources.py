"""Where a data set may come from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rkcnn.error import InputError

REMEDY = "name another folder with --data-dir or $RKCNN_DATA"
LONGEST = 86_400  # seconds; a socket takes no number much larger


@dataclass(frozen=True)
class Sources:
    """What may be asked for files, and how far the answer is trusted."""

    data_dir: Path | None = None
    """Folder to look in first and to keep files in."""
    mirror: str | None = None
    """Address of a folder with the published files, asked before the published mirrors."""
    offline: bool = False
    """Never touch the network."""
    unverified: bool = False
    """Use files already there even if their content isn't what was published; records will say so."""
    timeout: float = 15.0
    """Seconds without a byte before a source is given up."""

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= LONGEST:  # so written, nan is refused too
            raise InputError(f"--timeout {self.timeout:g} must be over 0 and at most {LONGEST} seconds")
        if self.mirror is not None and not _is_address(self.mirror):
            raise InputError(
                f"--mirror {ascii(self.mirror)[:200]} is no address of a folder; "
                "give one in plain ASCII, such as https://host/folder/"
            )

    def places(self) -> list[Path]:
        """Folders to look in, the first to write to: --data-dir, $RKCNN_DATA, the user's cache folder."""
        named = [self.data_dir, os.environ.get("RKCNN_DATA")]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rkcnn"
        return [Path(os.path.expanduser(place)) for place in (*named, cache) if place]


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # an open bracket, a port that is no number
        return False
    return bool(whole) and text.isascii() and text.isprintable() and " " not in text
