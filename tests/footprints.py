"""Records of memory made by hand."""

from __future__ import annotations

from pathlib import Path

from rkcnn.record.memory import Memory, memory_path

MIB = 1 << 20


def taken(spec: str, driver: int = 612, data: str = "mnist", gpu: str = "NVIDIA H200") -> Memory:
    """A record with so many MiB by the driver, 2 held by torch and 0.75 in tensors."""
    versions = {"rkcnn": "0", "torch": "2.11.0", "python": "3.12.3", "driver": "580.65.06"}
    return Memory(
        *(spec, data, [28, 28, 1], 10, driver * MIB, 2 * MIB, 3 * MIB // 4, "device", gpu, versions),
        commit=None,
        source="0123456789abcdef",
        hash_version=2,
    )


def put_memories(folder: Path, driver: dict[str, int], data: str = "mnist", gpu: str = "NVIDIA H200") -> None:
    """A memory.json for each network."""
    for spec, mib in driver.items():
        path = memory_path(folder, data, spec)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(taken(spec, mib, data, gpu).to_json())
