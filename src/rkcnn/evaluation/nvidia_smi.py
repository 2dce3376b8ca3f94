"""Reads from nvidia-smi which GPUs there are and how much memory they and the processes on them use."""

from __future__ import annotations

import subprocess
from typing import NamedTuple

from rkcnn.error import InputError

MIB = 1 << 20
TIMEOUT = 60  # seconds; nvidia-smi takes 1 to 10 s where the driver is loaded for each call


class Gpu(NamedTuple):
    """A GPU as its driver describes it."""

    uuid: str
    driver: str  # version
    used: int  # bytes in use by all processes
    name: str


def list_gpus() -> dict[str, Gpu]:
    """Return every GPU by its uuid, because its number may differ from CUDA's (CUDA_VISIBLE_DEVICES)."""
    gpus = {}
    for line in _query("--query-gpu=uuid,driver_version,memory.used,name"):
        uuid, driver, used, name = [*line.split(", ", 3), "", "", ""][:4]
        if not used.isdecimal():
            raise InputError(f"nvidia-smi says {line!r}, without the memory in use; measure on another GPU")
        gpus[uuid] = Gpu(uuid, driver, int(used) * MIB, name)
    if not gpus:
        raise InputError("nvidia-smi lists no GPU; measure on a machine with an NVIDIA GPU")
    return gpus


def list_processes() -> dict[tuple[str, int], int]:
    """Return the bytes that each process uses, by GPU uuid and process id.

    Empty in most containers, which hide the processes or their memory.
    """
    try:
        lines = _query("--query-compute-apps=gpu_uuid,pid,used_memory")
    except InputError:
        return {}
    rows = [line.split(", ") for line in lines]
    return {
        (row[0], int(row[1])): int(row[2]) * MIB
        for row in rows
        if len(row) == 3 and row[1].isdecimal() and row[2].isdecimal()
    }


def _query(query: str) -> list[str]:
    """Return the lines of nvidia-smi's answer."""
    remedy = "measure on a machine with an NVIDIA GPU and its driver"
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    except OSError:
        raise InputError(f"nvidia-smi, which reports a GPU's memory, is not installed here; {remedy}") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"nvidia-smi gave no answer in {TIMEOUT} s; {remedy}") from None
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode:
        why = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise InputError(f"nvidia-smi failed ({why}); {remedy}")
    return lines
