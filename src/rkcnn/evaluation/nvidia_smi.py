"""What the NVIDIA driver says of the GPUs here and of the processes on them."""

from __future__ import annotations

import subprocess
from typing import NamedTuple

from rkcnn.error import InputError

MIB = 1 << 20
SECONDS = 60  # nvidia-smi takes 1 to 10 s where the driver is loaded for each call


class Gpu(NamedTuple):
    uuid: str
    driver: str  # its version
    used: int  # bytes, of all processes
    name: str


def list_gpus() -> dict[str, Gpu]:
    """Every GPU by its uuid: its number here may not be CUDA's (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER)."""
    found = {}
    for line in _ask("--query-gpu=uuid,driver_version,memory.used,name"):
        uuid, driver, used, name = [*line.split(", ", 3), "", "", ""][:4]
        if not used.isdecimal():
            raise InputError(f"nvidia-smi says {line!r}, which has no memory in use; measure on another GPU")
        found[uuid] = Gpu(uuid, driver, int(used) * MIB, name)
    if not found:
        raise InputError("nvidia-smi lists no GPU; measure on a machine with an NVIDIA GPU")
    return found


def list_processes() -> dict[tuple[str, int], int]:
    """Bytes by GPU and process id; empty in most containers, which hide the processes or their memory."""
    try:
        lines = _ask("--query-compute-apps=gpu_uuid,pid,used_memory")
    except InputError:
        return {}
    rows = [line.split(", ") for line in lines]
    return {
        (row[0], int(row[1])): int(row[2]) * MIB
        for row in rows
        if len(row) == 3 and row[1].isdecimal() and row[2].isdecimal()
    }


def _ask(query: str) -> list[str]:
    remedy = "measure on a machine with an NVIDIA GPU and its driver"
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except OSError:
        raise InputError(f"no nvidia-smi here, which tells a GPU's memory; {remedy}") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"nvidia-smi gave no answer in {SECONDS} s; {remedy}") from None
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode:
        why = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise InputError(f"nvidia-smi failed ({why}); {remedy}")
    return lines
