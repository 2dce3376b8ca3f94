"""Measures the GPU memory of a new process that runs a network on one image.

The parent only asks the driver how much memory is in use. The child, which does the work, is
`python -m rkcnn.evaluation.memory SPEC CLASSES CHANNELS HEIGHT WIDTH DEVICE`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

from rkcnn.error import InputError

if TYPE_CHECKING:
    import torch


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


CHILD = (sys.executable, "-m", "rkcnn.evaluation.memory")
TOLERANCE = 4 * MIB  # how much the memory in use may differ before and after the child
WAIT = 0.5  # seconds between two questions whether the driver has taken the child's memory back
MOST_WAITS = 20


class MemoryUse(NamedTuple):
    """The memory of one process on a GPU, in bytes."""

    driver: int  # as the driver counts it, with the CUDA context
    reserved: int  # the most that torch held
    allocated: int  # the most that tensors took
    counted: str  # "process": as the driver lists it; "device": memory in use on the GPU with the process minus before
    gpu: Gpu


def measure_memory(spec: str, classes: int, shape: tuple[int, int, int], device: str = "cuda") -> MemoryUse:
    """Return the memory that a new process needs to run a network on one image of shape (H, W, C).

    Raises InputError where another process changed the memory of the GPU meanwhile.
    """
    if not re.fullmatch(r"cuda(:\d+)?", device):
        raise InputError(f"`device={device}` given; memory is measured on cuda or cuda:N")
    before, others = list_gpus(), list_processes()
    with _infer_in_child(spec, classes, shape, device) as (process, report):
        gpu = _find_gpu(before, report["uuid"])
        during, processes = list_gpus()[gpu.uuid].used, list_processes()
    key = gpu.uuid, process
    if key in processes and key not in others:  # a container's process ids may be those of others outside it
        return MemoryUse(processes[key], report["reserved"], report["allocated"], "process", gpu)
    after, taken = _wait_for_release(gpu), during - gpu.used
    if abs(after - gpu.used) > TOLERANCE or taken < report["reserved"]:
        raise InputError(
            f"something else changed the memory of {gpu.name} while {spec} was measured ({gpu.used // MIB} MiB in use "
            f"before, {during // MIB} during, {after // MIB} after); stop it and measure again"
        )
    return MemoryUse(taken, report["reserved"], report["allocated"], "device", gpu)


@contextmanager
def _infer_in_child(
    spec: str, classes: int, shape: tuple[int, int, int], device: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Start the child and yield its process id and its report; it keeps its memory until the block ends."""
    height, width, channels = shape
    command = [*CHILD, spec, *map(str, (classes, channels, height, width)), device]
    with TemporaryFile("w+") as errors, Popen(command, stdin=PIPE, stdout=PIPE, stderr=errors, text=True) as child:
        assert child.stdout is not None
        line = next((line for line in child.stdout if line.startswith("{")), None)
        if line is None:
            child.wait()
            errors.seek(0)
            why = (errors.read().strip().splitlines() or [f"its process ended with code {child.returncode}"])[-1]
            raise InputError(f"{spec} can't be measured on {device}: {why}")
        yield child.pid, json.loads(line)  # afterwards Popen closes stdin, which ends the child, and waits for it


def _find_gpu(gpus: dict[str, Gpu], uuid: str) -> Gpu:
    """Return the GPU with that uuid, which torch gives without the driver's GPU- in front."""
    for gpu in gpus.values():
        if gpu.uuid.lower().removeprefix("gpu-") == uuid.lower().removeprefix("gpu-"):
            return gpu
    raise InputError(
        f"nvidia-smi doesn't list the GPU {uuid} that torch used; measure on one that it lists, not on a part of one"
    )


def _wait_for_release(gpu: Gpu) -> int:
    """Wait until the driver has taken back the memory of the ended child; return the bytes then in use."""
    for _ in range(MOST_WAITS):
        used = list_gpus()[gpu.uuid].used
        if abs(used - gpu.used) <= TOLERANCE:
            break
        time.sleep(WAIT)
    return used


def infer(spec: str, classes: int, shape: tuple[int, int, int], device: torch.device) -> dict[str, Any]:
    """Run a network on one image in evaluation mode; return the bytes that torch used, and the uuid of the GPU."""
    import torch

    from rkcnn.model.backends import set_precision
    from rkcnn.model.create import create_model

    set_precision("fp32")  # as in the paper's recipes
    torch.manual_seed(0)  # how long a solver with a tolerance takes depends on the weights and the image
    height, width, channels = shape
    network = create_model(spec, classes, channels).to(device).eval()
    with torch.no_grad():
        network(torch.rand(1, channels, height, width).to(device))
    torch.cuda.synchronize(device)
    return {
        "allocated": torch.cuda.max_memory_allocated(device),
        "reserved": torch.cuda.max_memory_reserved(device),
        "uuid": str(torch.cuda.get_device_properties(device).uuid),
    }


def main(arguments: Sequence[str]) -> None:
    """Run as the child: infer, print the report, and keep the memory until standard input closes."""
    import torch

    spec, classes, channels, height, width, name = arguments
    device, count = torch.device(name), torch.cuda.device_count()
    if (device.index or 0) >= count:
        sys.exit(f"torch {torch.__version__} sees {count} GPUs here; name one of them, or measure on another machine")
    try:
        report = infer(spec, int(classes), (int(height), int(width), int(channels)), device)
    except InputError as error:
        sys.exit(str(error))
    print(json.dumps(report), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
