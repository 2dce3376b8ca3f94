"""GPU memory of a network, as it was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rkcnn.error import InputError
from rkcnn.record.result import Kinds, check_kinds
from rkcnn.record.run import folder_name
from rkcnn.run_folder import MEMORY

KINDS: Kinds = {
    **dict.fromkeys(("spec", "data", "counted", "gpu", "source"), str),
    **dict.fromkeys(("classes", "driver_bytes", "reserved_bytes", "allocated_bytes"), int),
    "shape": list,
    "versions": dict,
    "commit": (str, type(None)),
}


@dataclass(frozen=True)
class Memory:
    """Of a fresh process that infers one image; it lies in OUT/DATA/SPEC/memory.json, beside the network's runs."""

    spec: str
    data: str
    shape: list[int]  # H, W, C
    classes: int
    driver_bytes: int  # as the driver counts them, with the CUDA context
    reserved_bytes: int  # the most that torch held
    allocated_bytes: int  # the most that tensors took
    counted: str  # process: as the driver lists it; device: the GPU's memory in use with it minus that before it
    gpu: str
    versions: dict[str, str]  # rkcnn, torch, python, driver
    commit: str | None
    source: str

    def above(self, other: Memory) -> int | None:
        """The driver's bytes above another's; None where the contexts differ and would be a part of it."""
        same = all(getattr(self, name) == getattr(other, name) for name in ("gpu", "counted", "versions"))
        return self.driver_bytes - other.driver_bytes if same else None

    def to_json(self) -> bytes:
        return (json.dumps(asdict(self), indent=1) + "\n").encode()


def memory_path(out: Path, data: str, spec: str) -> Path:
    return out / folder_name(data) / folder_name(spec) / MEMORY


def read_memory(path: Path) -> Memory:
    """A record from its file, with everything that its readers rely on."""
    try:
        facts = json.loads(path.read_bytes())
        check_kinds("record", facts, KINDS)
        return Memory(**facts)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} can't be read as a record of memory: {error}; remove and measure again") from None


def find_memories(folder: Path) -> Iterator[tuple[Path, Memory | InputError]]:
    """Every record below a folder, in order of their names; one that can't be read is the reason why."""
    for path in sorted(folder.rglob(MEMORY)):
        try:
            yield path, read_memory(path)
        except InputError as error:
            yield path, error
