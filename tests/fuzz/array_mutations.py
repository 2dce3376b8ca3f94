"""Damages of arrays that can be read: other values in an npy or safetensors file, other sizes in an npz."""

from __future__ import annotations

import io
import struct
import zipfile
from random import Random

CHUNK = bytes(1 << 20)
FLAT = (6_000_000, 16_000_000)  # numbers of labels of a flat array, which takes 48 or 128 MB unpacked
CLASSES = (-1, 0, 1, 9, 10, 255, 32767)
NOT_FINITE = (float("nan"), float("inf"), -float("inf"), 2.0**120)


def make_npy(kind: str, shape: tuple[int, ...]) -> bytes:
    """Return the header of an npy file."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header


def change_classes(random: Random, sound: bytes) -> bytes:
    """Return a sound npy file of classes with another length, or with other values; `sound` is one of them."""
    length = int.from_bytes(sound[8:10], "little")
    values = sound[10 + length :]
    size = 8 if b"<i8" in sound[:128] else 2
    numbers = [int.from_bytes(values[i : i + size], "little", signed=True) for i in range(0, len(values), size)]
    match random.randrange(3):
        case 0:
            numbers = numbers[: random.choice((1, 7, len(numbers) - 1))]
        case 1:
            numbers += numbers[: random.choice((1, 100))]
        case _:
            for _ in range(random.choice((1, 20))):
                numbers[random.randrange(len(numbers))] = random.choice(CLASSES)
    return make_npy("<i2", (len(numbers),)) + struct.pack(f"<{len(numbers)}h", *numbers)


def change_weights(random: Random, sound: bytes) -> bytes:
    """Return a safetensors file with one number of its data replaced by one that no training gives."""
    start = 8 + int.from_bytes(sound[:8], "little")
    at = start + 4 * random.randrange(max((len(sound) - start) // 4, 1))
    return sound[:at] + struct.pack("<f", random.choice(NOT_FINITE)) + sound[at + 4 :]


def change_npz(random: Random, sound: bytes) -> bytes:
    """Return an npz with one array of flat values that is far larger than before, and fits the others no more."""
    with zipfile.ZipFile(io.BytesIO(sound)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    name = random.choice(list(members))
    kind, shape = {
        "x": ("|u1", (random.choice((2, 5)), random.choice((4000, 5000)), 5000)),
        "y": ("<i8", (random.choice(FLAT),)),
        "c": ("<U90000", (random.choice((100, 400)),)),
    }[name[0]]
    size = int(kind[2:]) * (4 if kind[1] == "U" else 1)
    for side in shape:
        size *= side
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
        for each, content in members.items():
            if each != name:
                new.writestr(each, content)
                continue
            with new.open(each, "w") as packed:
                packed.write(make_npy(kind, shape))
                for _ in range(size // len(CHUNK)):
                    packed.write(CHUNK)
                packed.write(CHUNK[: size % len(CHUNK)])
    return file.getvalue()
