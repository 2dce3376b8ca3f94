"""The record of how much GPU memory a network takes. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rkcnn.error import InputError
from rkcnn.record.result import SCHEMA, Kinds, check_fields
from rkcnn.record.run import folder_name
from rkcnn.run_folder import MEMORY

_FIELDS: Kinds = {
    **dict.fromkeys(("spec", "data", "counted", "gpu", "source"), str),
    **dict.fromkeys(("classes", "driver_bytes", "reserved_bytes", "allocated_bytes", "hash_version"), int),
    "shape": list,
    "versions": dict,
    "commit": (str, type(None)),
}


@dataclass(frozen=True)
class Memory:
    """The GPU memory of a fresh process that infers one image."""

    spec: str
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


def memory_path(out: Path, data: str, spec: str) -> Path:
    """Return the file of a network's record: OUT/DATA/SPEC/memory.json, beside the network's runs."""
    return out / folder_name(data) / folder_name(spec) / MEMORY


def read_memory(path: Path) -> Memory:
    """Read and check a record; raises InputError unless it holds everything that readers rely on."""
    try:
        facts = json.loads(path.read_bytes())
        check_fields("record", facts, {"schema": int})
        if (schema := facts.pop("schema")) != SCHEMA:
            raise ValueError(f"it has schema {schema}, and this version of rkcnn reads {SCHEMA}")
        check_fields("record", facts, _FIELDS, known=set(_FIELDS))
        return Memory(**facts)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} can't be read as a record of memory: {error}; remove and measure again") from None


def find_memories(folder: Path) -> Iterator[tuple[Path, Memory | InputError]]:
    """Yield every record file below a folder, sorted by name, with its record or the reason why it can't be read."""
    for path in sorted(folder.rglob(MEMORY)):
        try:
            yield path, read_memory(path)
        except InputError as error:
            yield path, error
