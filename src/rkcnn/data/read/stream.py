"""Bytes read in order, packed by zlib or plain, where a claim is checked before memory is given for it."""

from __future__ import annotations

import io
import zlib
from typing import BinaryIO

from rkcnn.error import InputError

CHUNK = 1 << 20
DEFLATE_RATIO = 1032  # the most that deflate can expand a byte to (258 bytes for 2 bits)


class Stream:
    """Reads `file` from where it stands, unpacking gzip (recognised by its magic) or, if told so, zlib.

    `limit` is the most bytes that may ever come out of it.
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
        self.bound = held * DEFLATE_RATIO if packed else held  # the most that can still come
        self.taken = 0

    def take(self, count: int, what: str) -> bytearray:
        """Exactly `count` bytes of `what`."""
        self._check(count, what)
        data = bytearray()
        while len(data) < count:
            chunk = self._chunk(min(CHUNK, count - len(data)))
            if not chunk:
                raise InputError(f"{self.where}: ends after {len(data)} of {count} bytes of {what}; it is truncated")
            data += chunk
        return data

    def skip(self, count: int, what: str) -> None:
        """Passes over `count` bytes."""
        self._check(count, what)
        while count:
            chunk = self._chunk(min(CHUNK, count))
            if not chunk:
                raise InputError(f"{self.where}: ends {count} bytes before the end of {what}; it is truncated")
            count -= len(chunk)

    def finish(self) -> None:
        """Passes over what is left, so that packed data are checked to their end."""
        while self._chunk(CHUNK):
            self._check(0, "what follows")

    def end(self) -> None:
        """Refuses bytes left over; on packed data this is also what tests the checksum at its end."""
        if self._chunk(1):
            raise InputError(f"{self.where}: goes on after its content; it is damaged or not what its name says")

    def _check(self, count: int, what: str) -> None:
        if self.taken + count > self.limit:
            raise InputError(
                f"{self.where}: {what} makes {self.taken + count} bytes, more than the {self.limit} allowed"
            )
        if count > self.bound:
            raise InputError(
                f"{self.where}: claims {count} bytes of {what}, but no more than {self.bound} can follow; "
                "it is truncated"
            )

    def _chunk(self, count: int) -> bytes:
        chunk = self._file.read(count) if self._inflate is None else self._unpack(count)
        self.bound -= len(chunk)
        self.taken += len(chunk)
        return chunk

    def _unpack(self, count: int) -> bytes:
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
