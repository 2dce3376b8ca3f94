"""GPU memory of a fresh process that infers one image.

The parent does nothing on the GPU but ask its driver. The child is
`python -m rkcnn.evaluation.memory SPEC CLASSES CHANNELS HEIGHT WIDTH DEVICE`.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from subprocess import PIPE, Popen
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

from rkcnn.error import InputError
from rkcnn.evaluation.nvidia_smi import MIB, Gpu, list_gpus, list_processes

if TYPE_CHECKING:
    import torch

CHILD = (sys.executable, "-m", "rkcnn.evaluation.memory")
TOLERANCE = 4 * MIB  # by which the GPU's memory may differ after the process from before it
PATIENCE = 20  # times WAIT that the driver is given to take back a process's memory
WAIT = 0.5


class Measured(NamedTuple):
    """Bytes; `counted` says how the driver's came about.

    process: as the driver lists it; device: the GPU's memory in use with the process minus that before it.
    """

    driver: int  # with the CUDA context
    reserved: int  # the most that torch held
    allocated: int  # the most that tensors took
    counted: str
    gpu: Gpu


def measure_memory(spec: str, classes: int, shape: tuple[int, int, int], device: str = "cuda") -> Measured:
    """Of a network for images of (H, W, C); one sentence where another process got in the way."""
    if not re.fullmatch(r"cuda(:\d+)?", device):
        raise InputError(f"device {device!r} given; memory is measured on cuda or cuda:N")
    before, others = list_gpus(), list_processes()
    with _infer_in_child(spec, classes, shape, device) as (process, told):
        gpu = _find_gpu(before, told["uuid"])
        during, processes = list_gpus()[gpu.uuid].used, list_processes()
    key = gpu.uuid, process
    if key in processes and key not in others:  # a container's process ids may be those of others outside it
        return Measured(processes[key], told["reserved"], told["allocated"], "process", gpu)
    after, taken = _settle(gpu), during - gpu.used
    if abs(after - gpu.used) > TOLERANCE or taken < told["reserved"]:
        raise InputError(
            f"something else changed the memory of {gpu.name} while {spec} was measured ({gpu.used // MIB} MiB in use "
            f"before, {during // MIB} during, {after // MIB} after); stop it and measure again"
        )
    return Measured(taken, told["reserved"], told["allocated"], "device", gpu)


@contextmanager
def _infer_in_child(
    spec: str, classes: int, shape: tuple[int, int, int], device: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Its process id and what it says of itself; it lives, and holds its memory, until the block ends."""
    height, width, channels = shape
    words = [*CHILD, spec, *map(str, (classes, channels, height, width)), device]
    with TemporaryFile("w+") as errors, Popen(words, stdin=PIPE, stdout=PIPE, stderr=errors, text=True) as child:
        assert child.stdout is not None
        line = next((line for line in child.stdout if line.startswith("{")), None)
        if line is None:
            child.wait()
            errors.seek(0)
            why = (errors.read().strip().splitlines() or [f"its process ended with code {child.returncode}"])[-1]
            raise InputError(f"{spec} can't be measured on {device}: {why}")
        yield child.pid, json.loads(line)  # Popen's end closes stdin, which ends the child, and waits for it


def _find_gpu(gpus: dict[str, Gpu], uuid: str) -> Gpu:
    """torch gives the uuid without the driver's GPU- in front."""
    for gpu in gpus.values():
        if gpu.uuid.lower().removeprefix("gpu-") == uuid.lower().removeprefix("gpu-"):
            return gpu
    raise InputError(f"nvidia-smi doesn't list the GPU {uuid} that torch took; measure on one that it lists, whole")


def _settle(gpu: Gpu) -> int:
    """What is in use once the process is gone, which the driver may notice late."""
    for _ in range(PATIENCE):
        used = list_gpus()[gpu.uuid].used
        if abs(used - gpu.used) <= TOLERANCE:
            break
        time.sleep(WAIT)
    return used


def infer(spec: str, classes: int, shape: tuple[int, int, int], device: torch.device) -> dict[str, Any]:
    """One image through a network in eval mode; what torch took for it, in bytes, and which GPU that was."""
    import torch

    from rkcnn.model.create import create_model

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # fp32, as the paper's recipes
    torch.manual_seed(0)  # solvers with a tolerance go by the weights and the image
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


def main(words: Sequence[str]) -> None:
    """The child: infer, say what it took, and live on until standard input ends."""
    import torch

    spec, classes, channels, height, width, name = words
    device, count = torch.device(name), torch.cuda.device_count()
    if (device.index or 0) >= count:
        sys.exit(f"torch {torch.__version__} sees {count} GPUs here; name one of them, or measure on another machine")
    try:
        told = infer(spec, int(classes), (int(height), int(width), int(channels)), device)
    except InputError as error:
        sys.exit(str(error))
    print(json.dumps(told), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
