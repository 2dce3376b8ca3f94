"""Compressed files and tar archives, read in order without trusting the sizes that they claim."""

from __future__ import annotations

import io
import zlib
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import BinaryIO

from rkcnn.error import InputError

CHUNK = 1 << 20  # bytes read at a time
DEFLATE_RATIO = 1032  # the most that deflate can expand a byte to (258 bytes for 2 bits)
_BLOCK = 512  # bytes; what a tar archive is made of
_FILE, _LINKS = b"0\0", b"12"  # type flags of members


class BoundedReader:
    """Reads `file` from its current position on, decompressing gzip (recognised by its first bytes) or zlib.

    At most `limit` bytes come out of it, and a claimed size is compared with what the file can hold before memory is
    allocated for it. `where` names the file in messages.
    """

    def __init__(self, file: BinaryIO, where: str, limit: int, zlib_packed: bool = False) -> None:
        self.where, self.limit = where, limit
        self._file = file
        start = file.tell()
        held = file.seek(0, io.SEEK_END) - start
        file.seek(start)
        packed = zlib_packed or file.read(2) == b"\x1f\x8b"
        file.seek(start)
        self._inflate = zlib.decompressobj(wbits=47) if packed else None  # 47: gzip or zlib, by its header
        self.bound = held * DEFLATE_RATIO if packed else held  # the most bytes that can still come
        self.count = 0  # bytes read so far

    def read(self, count: int, what: str) -> bytearray:
        """Return exactly `count` bytes; `what` names them in messages."""
        self._check(count, what)
        data = bytearray()
        while len(data) < count:
            chunk = self._chunk(min(CHUNK, count - len(data)))
            if not chunk:
                raise InputError(f"{self.where}: ends after {len(data)} of {count} bytes of {what}; it is truncated")
            data += chunk
        return data

    def skip(self, count: int, what: str) -> None:
        """Pass over `count` bytes, keeping none of them."""
        self._check(count, what)
        while count:
            chunk = self._chunk(min(CHUNK, count))
            if not chunk:
                raise InputError(f"{self.where}: ends {count} bytes before the end of {what}; it is truncated")
            count -= len(chunk)

    def skip_rest(self) -> None:
        """Pass over everything that is left, so that the checksum at the end of compressed data is tested."""
        while self._chunk(CHUNK):
            self._check(0, "what follows")

    def expect_end(self) -> None:
        """Raise InputError if a byte is left; on compressed data this also tests the checksum at its end."""
        if self._chunk(1):
            raise InputError(f"{self.where}: goes on after its content; it is damaged or not what its name says")

    def _check(self, count: int, what: str) -> None:
        if self.count + count > self.limit:
            raise InputError(
                f"{self.where}: {what} makes {self.count + count} bytes, more than the {self.limit} allowed"
            )
        if count > self.bound:
            raise InputError(
                f"{self.where}: claims {count} bytes of {what}, but no more than {self.bound} can follow; "
                "it is truncated"
            )

    def _chunk(self, count: int) -> bytes:
        chunk = self._file.read(count) if self._inflate is None else self._decompress(count)
        self.bound -= len(chunk)
        self.count += len(chunk)
        return chunk

    def _decompress(self, count: int) -> bytes:
        assert self._inflate is not None
        try:
            while not self._inflate.eof:
                packed = self._inflate.unconsumed_tail or self._file.read(1 << 16)
                plain = self._inflate.decompress(packed, count)
                if plain or self._inflate.eof:
                    return plain
                if not packed:
                    raise InputError(f"{self.where}: the compressed data stop in the middle; the file is truncated")
        except zlib.error as error:
            raise InputError(f"{self.where}: the compressed data are damaged ({error})") from None
        return b""


def read_tar(file: BinaryIO, wanted: Collection[str], where: str, limit: int) -> dict[str, bytearray]:
    """Return the wanted members of a .tar or .tar.gz by name; nothing is ever extracted to disk.

    Raises InputError if one is missing, or if any member points outside the archive's folder.
    """
    reader = BoundedReader(file, where, limit)
    found: dict[str, bytearray] = {}
    while any(header := reader.read(_BLOCK, "a member's header")):  # a block of zeros ends the archive
        name, size = _member_name(header), _member_size(header, where)
        _refuse_outside(name, header, where)
        if header[156] in _FILE and name in wanted:
            found[name] = reader.read(size, name)
        else:
            reader.skip(size, name)
        reader.skip(-size % _BLOCK, "padding")
    reader.skip_rest()
    missing = sorted(set(wanted) - set(found))
    if missing:
        raise InputError(f"{where}: has no member {missing[0]}; it is not the archive its name says")
    return found


def _member_name(header: bytearray) -> str:
    name = header[:100].split(b"\0")[0].decode("utf-8", "replace")
    ustar = header[257:262] == b"ustar" and header[257:265] != b"ustar  \0"  # GNU puts other things in the prefix
    prefix = header[345:500].split(b"\0")[0].decode("utf-8", "replace") if ustar else ""
    return str(PurePosixPath(prefix) / name)


def _member_size(header: bytearray, where: str) -> int:
    checksum = sum(header) - sum(header[148:156]) + 8 * ord(" ")  # its own 8 bytes count as spaces
    try:
        if int(header[148:156].split(b"\0")[0].strip() or b"0", 8) != checksum:
            raise ValueError
        size = int(header[124:136].strip(b"\0 ") or b"0", 8)
    except ValueError:
        raise InputError(f"{where}: a member's header is damaged, or this is not a tar archive") from None
    if size < 0:
        raise InputError(f"{where}: a member claims {size} bytes")
    return size


def _refuse_outside(name: str, header: bytearray, where: str) -> None:
    """Raise InputError if the member's own path or the target of its link leaves the archive's folder."""
    paths = [PurePosixPath(name)]
    if header[156] in _LINKS:
        target = header[157:257].split(b"\0")[0].decode("utf-8", "replace")
        paths.append(PurePosixPath(name).parent / target if header[156:157] == b"2" else PurePosixPath(target))
    for path in paths:
        depth = 0
        for step in path.parts:
            depth += -1 if step == ".." else 1
            if depth < 0 or path.is_absolute():
                raise InputError(
                    f"{where}: its member {name} points outside the folder ({path}); the archive is refused"
                )
