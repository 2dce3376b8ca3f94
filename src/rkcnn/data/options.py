"""What a user may choose about data: where a set may come from, and how their own images are read."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from rkcnn.error import InputError, did_you_mean
from rkcnn.json_file import Kinds, check_fields

REMEDY = "name another folder with `data_dir=...` or $RKCNN_DATA"
NPZ_KEYS = ("x_train", "y_train", "x_test", "y_test", "classes")  # the arrays of an .npz
LONGEST_TIMEOUT = 86_400  # seconds; a socket takes no number much larger


@dataclass(frozen=True)
class Sources:
    """Where the files of a data set may come from, and whether unknown content may be used."""

    data_dir: Path | None = None
    """Folder to look in first and to keep files in."""
    mirror: str | None = None
    """Address of a folder with the published files, asked before the published mirrors."""
    offline: bool = False
    """Never use the network."""
    unverified: bool = False
    """Use files on this machine even if their content isn't what was published; records will say so."""
    timeout: float = 15.0
    """Seconds without a byte before a source is given up."""

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= LONGEST_TIMEOUT:  # written this way, nan is refused too
            raise InputError(f"`timeout={self.timeout:g}` must be over 0 and at most {LONGEST_TIMEOUT} seconds")
        if self.mirror is not None and not _is_address(self.mirror):
            raise InputError(
                f"`mirror={ascii(self.mirror)[:200]}` is not the address of a folder; "
                "give one in plain ASCII, such as https://host/folder/"
            )

    def folders(self) -> list[Path]:
        """Return the folders to look in, the first of which is written to: data_dir, $RKCNN_DATA, the user's cache."""
        named = [self.data_dir, os.environ.get("RKCNN_DATA")]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rkcnn"
        return [Path(os.path.expanduser(folder)) for folder in (*named, cache) if folder]


@dataclass(frozen=True)
class OwnOptions:
    """How a user's own images, `folder:PATH` or `npz:PATH`, are read; published sets have no such options."""

    size: int | Literal["auto"] | None = None
    """Side of the square, in pixels, that a folder's images are resized and cropped to (32 if not given), or auto: the
    median of their shorter sides, from 16 to 64."""
    split: float | None = None
    """Share of the images that becomes the test set, where the folder or file has none of its own."""
    skip_bad: bool = False
    """Leave out images that can't be read instead of stopping at the first."""
    max_bytes: int = 4 << 30
    """The most bytes that the decoded images may take."""
    keys: str | None = None
    """The names that an .npz has for its arrays, as in x_train=pictures,y_train=kinds."""
    channels: Literal[1, 3] | None = None
    """Make the images grey (1), or give them three channels (3); by default 1 if every image is grey, otherwise 3."""

    def __post_init__(self) -> None:
        if self.split is not None and not (isinstance(self.split, Real) and 0 < self.split < 1):
            raise InputError(f"`split={self.split!r}` must be a share between 0 and 1, say `split=0.2`")
        if self.size not in (None, "auto"):
            if not _is_whole(self.size) or int(self.size) < 1:
                raise InputError(f"`size={self.size!r}` must be a whole number of pixels, 1 or more, or auto")
            object.__setattr__(self, "size", int(self.size))  # of NumPy's numbers none fits into a JSON file
        if self.channels is not None:
            if not _is_whole(self.channels) or self.channels not in (1, 3):
                raise InputError(f"`channels={self.channels!r}` must be 1 (grey) or 3 (colour)")
            object.__setattr__(self, "channels", int(self.channels))
        if self.split is not None:
            object.__setattr__(self, "split", float(self.split))
        if not isinstance(self.skip_bad, bool):
            raise InputError(f"`skip_bad={self.skip_bad!r}` must be True or False")
        if not _is_whole(self.max_bytes) or int(self.max_bytes) < 1:
            raise InputError(f"`max_bytes={self.max_bytes!r}` must be a whole number of bytes, 1 or more")
        object.__setattr__(self, "max_bytes", int(self.max_bytes))
        if not isinstance(self.keys, str | None):
            raise InputError(f"`keys={self.keys!r}` must be text, as in `keys=x_train=pictures,y_train=kinds`")
        self.key_names()

    def key_names(self) -> dict[str, str]:
        """Return `keys` by our names: {"x_train": "pictures", "y_train": "kinds"}; InputError if they can't be read."""
        names: dict[str, str] = {}
        for pair in self.keys.split(",") if self.keys is not None else ():
            ours, equals, theirs = (part.strip() for part in pair.partition("="))
            if ours not in NPZ_KEYS or not equals or not theirs or ours in names:
                raise InputError(
                    f"`keys={self.keys}` must name arrays of the file for {', '.join(NPZ_KEYS)}, each at most once, "
                    "as in `keys=x_train=pictures,y_train=kinds`"
                )
            names[ours] = theirs
        return names


BY_CONTENT = "content"  # by each image's content; for a class that was wholly below the share, an image was moved
BY_CONTENT_ALONE = "content alone"  # the same where none was moved: no image below the share was trained on
BELOW_SHARE = "below the share"  # asked for, not recorded: the images below the share alone, whatever their classes
SPLIT_RULES = (BY_CONTENT, BY_CONTENT_ALONE, BELOW_SHARE)


@dataclass(frozen=True)
class SplitOptions(OwnOptions):
    """The options of own images that were split, as a record has them: also by which rule test images were chosen."""

    split_rule: str = BY_CONTENT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.split_rule not in SPLIT_RULES:
            raise InputError(f"`split_rule={self.split_rule!r}` given; rules are {', '.join(SPLIT_RULES)}")


def _is_whole(value: object) -> bool:
    """Whether a value is a whole number, Python's or NumPy's."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def read_own_options(facts: dict[str, Any]) -> OwnOptions:
    """Return the options of own images in a file of ours; raises TypeError or InputError if they can't be any."""
    known = [field.name for field in fields(SplitOptions)]
    for name in facts:
        if name not in known:
            raise TypeError(f"own images have no option {name!r}{did_you_mean(name, known)}")
    check_fields("field `own`", facts, {}, optional=_OWN_KINDS)
    return (SplitOptions if "split_rule" in facts else OwnOptions)(**facts)


_OWN_KINDS: Kinds = {
    "size": (int, str, type(None)),
    "split": (int, float, type(None)),
    "skip_bad": bool,
    "max_bytes": int,
    "keys": (str, type(None)),
    "channels": (int, type(None)),
    "split_rule": str,
}


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        complete = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # an open bracket, or a port that is not a number
        return False
    return bool(complete) and text.isascii() and text.isprintable() and " " not in text
