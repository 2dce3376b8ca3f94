"""A run's files on their way between machines: names and bytes, nothing that runs code."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rkcnn.disk import write_whole, writing_to
from rkcnn.fit.checkpoint import KEPT, REMEDY, prune

Parcel = dict[str, bytes]


def pack_checkpoints(folder: Path, count: int = KEPT) -> Parcel:
    """The newest `count` checkpoints of a run; each is a JSON and the tensors that it vouches for."""
    found: Parcel = {}
    for facts in sorted(folder.glob("checkpoint-*.json"))[-count:]:
        with suppress(FileNotFoundError):  # one that is just being replaced by a newer
            pair = {path.name: path.read_bytes() for path in (facts, facts.with_suffix(".safetensors"))}
            found |= pair
    return found


def unpack_checkpoints(folder: Path, parcel: Parcel, remedy: str = REMEDY) -> None:
    """Put checkpoints beside those in a folder, and keep the newest: an old one that comes late does no harm."""
    with writing_to(folder, remedy):
        folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(parcel, key=lambda name: name.endswith(".json")):  # the JSON last: it vouches
        write_whole(folder / name, parcel[name], remedy)
    prune(folder)


def pack_results(folder: Path) -> Parcel:
    """What a finished run leaves beside its checkpoints."""
    hidden = (".", "checkpoint-")
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(hidden)}


def unpack_results(folder: Path, parcel: Parcel) -> None:
    """The result last: where it lies, everything does."""
    for name in sorted(parcel, key=lambda name: name == "result.json"):
        write_whole(folder / name, parcel[name], REMEDY)
