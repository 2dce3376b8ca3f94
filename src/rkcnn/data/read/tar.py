"""Members of a .tar or .tar.gz, read into memory; nothing is ever extracted to disk."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath
from typing import BinaryIO

from rkcnn.data.read.stream import Stream
from rkcnn.error import InputError

_BLOCK = 512
_FILE, _LINKS = b"0\0", b"12"


def read_tar(file: BinaryIO, wanted: Collection[str], where: str, limit: int) -> dict[str, bytearray]:
    """The wanted members by name; refuses an archive with a member that points outside its folder."""
    stream = Stream(file, where, limit)
    found: dict[str, bytearray] = {}
    while any(header := stream.take(_BLOCK, "a member's header")):  # a block of zeros ends the archive
        name, size = _name(header), _size(header, where)
        _refuse_outside(name, header, where)
        if header[156] in _FILE and name in wanted:
            found[name] = stream.take(size, name)
        else:
            stream.skip(size, name)
        stream.skip(-size % _BLOCK, "padding")
    stream.finish()
    missing = sorted(set(wanted) - set(found))
    if missing:
        raise InputError(f"{where}: has no member {missing[0]}; it is not the archive its name says")
    return found


def _name(header: bytearray) -> str:
    name = header[:100].split(b"\0")[0].decode("utf-8", "replace")
    ustar = header[257:262] == b"ustar" and header[257:265] != b"ustar  \0"  # GNU puts other things in the prefix
    prefix = header[345:500].split(b"\0")[0].decode("utf-8", "replace") if ustar else ""
    return str(PurePosixPath(prefix) / name)


def _size(header: bytearray, where: str) -> int:
    unsigned = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    try:
        if int(header[148:156].split(b"\0")[0].strip() or b"0", 8) != unsigned:
            raise ValueError
        size = int(header[124:136].strip(b"\0 ") or b"0", 8)
    except ValueError:
        raise InputError(f"{where}: a member's header is damaged, or this is no tar archive") from None
    if size < 0:
        raise InputError(f"{where}: a member claims {size} bytes")
    return size


def _refuse_outside(name: str, header: bytearray, where: str) -> None:
    targets = [PurePosixPath(name)]
    if header[156] in _LINKS:
        target = header[157:257].split(b"\0")[0].decode("utf-8", "replace")
        targets.append(PurePosixPath(name).parent / target if header[156:157] == b"2" else PurePosixPath(target))
    for path in targets:
        depth = 0
        for step in path.parts:
            depth += -1 if step == ".." else 1
            if depth < 0 or path.is_absolute():
                raise InputError(
                    f"{where}: its member {name} points outside the folder ({path}); the archive is refused"
                )
