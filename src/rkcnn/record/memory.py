"""The record of how much GPU memory a network takes. Imports no torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rkcnn.disk import read_file
from rkcnn.error import InputError
from rkcnn.json_file import SHORT, Kinds, check_fields, parse_record
from rkcnn.record.result import LARGEST, SCHEMA
from rkcnn.record.run import folder_name
from rkcnn.run_folder import MEMORY, find_named

_FIELDS: Kinds = {
    **dict.fromkeys(("network", "data", "counted", "gpu", "source"), str),
    **dict.fromkeys(("classes", "driver_bytes", "reserved_bytes", "allocated_bytes", "hash_version"), int),
    "shape": list,
    "versions": dict,
    "commit": (str, type(None)),
}


@dataclass(frozen=True)
class Memory:
    """The GPU memory of a fresh process that infers one image."""

    network: str
    data: str
    shape: list[int]  # H, W, C
    classes: int
    driver_bytes: int  # as the driver counts, with the CUDA context
    reserved_bytes: int  # the most that torch had reserved
    allocated_bytes: int  # the most that tensors took of it
    counted: str  # process: the driver lists it; device: the GPU's memory in use grew by so much
    gpu: str
    versions: dict[str, str]  # rkcnn, torch, python, driver
    commit: str | None
    source: str  # the hash of the code that measured
    hash_version: int  # that the hash was made by

    def above(self, other: Memory) -> int | None:
        """Return how many bytes more than another network it takes; None if they were not measured alike."""
        same = all(getattr(self, name) == getattr(other, name) for name in ("gpu", "counted", "versions"))
        return self.driver_bytes - other.driver_bytes if same else None

    def to_json(self) -> bytes:
        return (json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n").encode()


def memory_path(out: Path, data: str, network: str) -> Path:
    """Return the file of a network's record: OUT/DATA/NETWORK/memory.json, beside the network's runs."""
    return out / folder_name(data) / folder_name(network) / MEMORY


def read_memory(path: Path) -> Memory:
    """Read and check a record; raises InputError unless it holds everything that readers rely on."""
    content = read_file(path, SHORT)
    try:
        facts = parse_record(content, "record", SCHEMA)
        check_fields("record", facts, _FIELDS, known=set(_FIELDS))
        check_fields("versions", facts["versions"], dict.fromkeys(facts["versions"], str))
        _check_values(Memory(**facts))
        return Memory(**facts)
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} can't be read as a record of memory: {error}; remove and measure again") from None


def _check_values(record: Memory) -> None:
    """Raise ValueError unless the numbers are possible ones."""
    counts = record.classes, record.driver_bytes, record.reserved_bytes, record.allocated_bytes
    if not all(0 <= value <= LARGEST for value in counts):
        raise ValueError(f"its classes and bytes must be from 0 to {LARGEST:g}")
    if len(record.shape) != 3 or not all(type(side) is int and 0 < side < 1 << 20 for side in record.shape):
        raise ValueError("its shape must be three whole numbers: height, width and channels")


def read_memories(folder: Path) -> tuple[list[Memory], list[InputError]]:
    """Read every record of memory below a folder; return them, and an error for each that can't be read."""
    found, unreadable = [], []
    for path in find_named(folder, MEMORY):
        try:
            found.append(read_memory(path))
        except InputError as error:
            unreadable.append(error)
    return found, unreadable
