"""The device that runs are computed on, and what is recorded of the machine."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from rkcnn.error import InputError
from rkcnn.model.backends import backends_set_to

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def pick_device(name: str | torch.device) -> torch.device:
    """Return the device of that name; auto is a GPU where there is one. Raises InputError if it can't be used."""
    if not isinstance(name, (str, torch.device)):
        raise InputError(f"`device={name!r}` given; give its name: cpu, cuda, cuda:N or auto")
    name = str(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda"):  # torch would first import modules for some of the others
            raise InputError(f"can't compute on {name!r}; devices are cpu, cuda and cuda:N")
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        have = ["cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise InputError(f"device {name!r} can't be used here; use {', '.join(have)} or auto") from None
    return device


@contextmanager
def usual_torch(precision: str) -> Iterator[None]:
    """Compute in the block as runs do: new tensors on the CPU in float32, with gradients, no autocast, the same bits.

    Otherwise a caller's `torch.set_default_dtype`, `torch.set_default_device`, `torch.no_grad`, `torch.autocast`,
    `torch.set_float32_matmul_precision` or `torch.backends.cudnn.benchmark` would change a run's results, or break it.
    `precision` is that of the runs. Some of cuDNN's algorithms add up in an order that changes from call to call, as
    was seen of gradients in tf32; they are left out.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), torch.enable_grad(), ExitStack() as stack:
            stack.enter_context(backends_set_to(precision, deterministic=True, benchmark=False))
            for kind in ("cpu", "cuda"):
                if torch.is_autocast_enabled(kind):
                    stack.enter_context(torch.autocast(kind, enabled=False))
            if torch.get_default_device().type != "cpu":  # the context makes every operation a little slower
                stack.enter_context(torch.device("cpu"))
            yield
    finally:
        torch.set_default_dtype(before)


def keep_freed_memory() -> None:
    """Let the process keep the memory that it frees, where the C library is glibc.

    Returning memory to the system and requesting it again at every step took a fifth of the time on two cores
    (benchmarks/freed.py). Keeping it costs 100 MB. It affects the whole process, so only commands call this.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for parameter in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
            mallopt(parameter, 1 << 30)


def peak_bytes(device: torch.device) -> int:
    """Return the most memory used: on a GPU by torch since `forget_peak`, else by this process since it started."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return _peak_bytes_on_windows()
    import resource  # does not exist on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak(device: torch.device) -> None:
    """Let `peak_bytes` count anew on a GPU; a process can't forget the most memory that it used on the CPU."""
    if device.type == "cuda":
        torch.cuda.init()  # or torch may refuse: it knows no device before its first use
        torch.cuda.reset_peak_memory_stats(device)


class _MemoryCounters(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS of psapi.h."""

    _fields_ = (
        ("cb", ctypes.c_uint32),
        ("PageFaultCount", ctypes.c_uint32),
        ("PeakWorkingSetSize", ctypes.c_size_t),
        ("others", ctypes.c_size_t * 7),
    )


def _peak_bytes_on_windows() -> int:
    """Ask the system for the largest working set of this process; 0 if it does not say."""
    kernel32 = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined, unused-ignore]
    kernel32.GetCurrentProcess.restype = ctypes.c_void_p
    counters = _MemoryCounters(cb=ctypes.sizeof(_MemoryCounters))
    process = ctypes.c_void_p(kernel32.GetCurrentProcess())
    known = kernel32.K32GetProcessMemoryInfo(process, ctypes.byref(counters), counters.cb)
    return int(counters.PeakWorkingSetSize) if known else 0


def describe_machine(device: torch.device) -> dict[str, Any]:
    """Return what a record says of the machine: system, processor, CPU threads, and the GPU if one is used."""
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "threads": torch.get_num_threads(),
        "gpu": gpu,
    }
