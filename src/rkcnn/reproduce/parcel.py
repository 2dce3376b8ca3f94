"""A run's files on their way between machines: names and bytes, nothing that runs code."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rkcnn.disk import write_whole, writing_to
from rkcnn.fit.checkpoint import KEPT, REMEDY, prune
from rkcnn.run_folder import RESULT, find_checkpoints, is_checkpoint, tensors_of

Parcel = dict[str, bytes]


def pack_checkpoints(folder: Path, count: int = KEPT) -> Parcel:
    """The newest `count` checkpoints of a run; each is a JSON and the tensors that it vouches for."""
    found: Parcel = {}
    for facts in find_checkpoints(folder)[-count:]:
        with suppress(FileNotFoundError):  # one that is just being replaced by a newer
            pair = {path.name: path.read_bytes() for path in (facts, tensors_of(facts))}
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
    names = (path.name for path in folder.iterdir())
    return {
        name: (folder / name).read_bytes() for name in names if not name.startswith(".") and not is_checkpoint(name)
    }


def unpack_results(folder: Path, parcel: Parcel) -> None:
    """The result last: where it lies, everything does."""
    for name in sorted(parcel, key=lambda name: name == RESULT):
        write_whole(folder / name, parcel[name], REMEDY)
