"""Where a data set may come from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

REMEDY = "name another folder with --data-dir or $RKCNN_DATA"


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

    def places(self) -> list[Path]:
        """Folders to look in, the first to write to: --data-dir, $RKCNN_DATA, the user's cache folder."""
        named = [self.data_dir, os.environ.get("RKCNN_DATA")]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rkcnn"
        return [Path(place) for place in named if place] + [cache]
