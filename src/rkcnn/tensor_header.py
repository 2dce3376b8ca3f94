"""The header of a safetensors file, looked at before the library parses it, which takes up to 30 times its bytes."""

from __future__ import annotations

from typing import BinaryIO

LONGEST = 8_000_000  # bytes; the largest network of the paper's tables has 600 thousand
MOST_TEXTS = 200_000  # names and texts; a tensor has 5, so 40,000 tensors


def check_tensor_header(file: BinaryIO) -> None:
    """Raise ValueError, with the reason, if the header at the start of a file is larger than any of ours can be."""
    size = int.from_bytes(file.read(8), "little")
    if size > LONGEST:
        raise ValueError(f"it begins with a header of {size:,} bytes, and at most {LONGEST:,} are read")
    header = file.read(size).replace(b"\\\\", b"")  # what is left of backslashes escapes one character each
    texts = (header.count(b'"') - header.count(b'\\"')) // 2
    if texts > MOST_TEXTS:
        raise ValueError(f"its header has {texts:,} names and texts, and at most {MOST_TEXTS:,} are read")
