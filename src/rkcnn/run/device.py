"""Where a run takes place: its device, and what can be said of the machine."""

from __future__ import annotations

import ctypes
import platform
import sys
from typing import Any

import torch

from rkcnn.error import InputError

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def pick_device(name: str) -> torch.device:
    """A device by name; auto takes a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda"):  # some of the others would be imported first, and are not there
            raise InputError(f"can't train on {name!r}; devices are cpu, cuda and cuda:N")
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        have = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise InputError(f"no device {name!r} here; there is {', '.join(have)}, or say auto") from None
    return device


def set_precision(precision: str) -> None:
    """tf32 lets matrix units round float32 products; fp32 forbids it."""
    torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.allow_tf32 = precision != "fp32"


def keep_freed_memory() -> None:
    """Let the process keep the memory that it frees, where the C library is glibc.

    Giving it back to the system and asking for it again, at every step, took a fifth of the time on two cores
    (benchmarks/freed.py); the price was 100 MB. It is a setting of the whole process: for commands, not for a library.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for parameter in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
            mallopt(parameter, 1 << 30)


def peak_bytes(device: torch.device) -> int:
    """The most memory used: of the device, or of this process on a CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def describe_machine(device: torch.device) -> dict[str, Any]:
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "threads": torch.get_num_threads(),
        "gpu": gpu,
    }
