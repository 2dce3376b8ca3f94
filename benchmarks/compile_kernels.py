"""Compiles the fused kernels for an H200, on a machine without a GPU: whether they compile, and what they would take.

PYTHONPATH=.venv/triton python benchmarks/compile_kernels.py [bf16|tf32]     (make test-kernels installs Triton there)

Prints a line for each kernel that training would launch: KiB of shared memory, registers of a thread, and bytes of a
thread that do not fit the registers.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.runtime import driver, jit

from rkcnn.model.fast import launch_backward, launch_forward, ode, stem
from rkcnn.model.fast.program import Program, fused_width

STEPS = (  # images, pixels of a side, channels
    (128, 6, 32), (128, 6, 20), (32, 32, 26), (32, 16, 28), (32, 8, 28), (256, 32, 32), (256, 16, 64), (64, 32, 64),
    (256, 32, 64), (32, 32, 80), (32, 16, 80), (32, 8, 80), (16, 8, 96), (32, 32, 96), (32, 32, 120), (32, 16, 120),
    (32, 8, 120), (64, 32, 120), (256, 32, 120),
)  # fmt: skip
STEMS = (  # images, channels, pixels of a side, channels of the result, taps of a side, stride, padding
    (128, 1, 28, 32, 3, 1, 0), (128, 32, 26, 32, 4, 2, 1), (128, 32, 13, 32, 4, 2, 1), (128, 20, 26, 20, 4, 2, 1),
    (128, 64, 26, 64, 4, 2, 1), (32, 64, 13, 64, 4, 2, 1), (32, 3, 32, 120, 3, 1, 1), (256, 4, 32, 128, 3, 1, 1),
)  # fmt: skip
DTYPES = {"bf16": torch.bfloat16, "tf32": torch.float32}


class NoDevice:
    """Stands in for a GPU's driver: kernels are compiled for an H200 and not launched."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


def compile_only(kernel: Any, grid: tuple[int, ...]) -> Callable[..., None]:
    """Return what compiles a kernel where it would be launched, and prints what it takes if that is new."""

    def compile_for(*arguments: Any, **options: Any) -> None:
        compiled = kernel.run(*arguments, grid=grid, warmup=True, **options)
        if compiled.hash in seen:
            return
        seen.add(compiled.hash)
        registers, stack = read_usage(compiled.asm["cubin"])
        blocks = " ".join(f"{name}={value}" for name, value in options.items())
        name, shared = kernel.fn.__name__, compiled.metadata.shared / 1024
        print(f"{name:24} {shared:6.1f} KiB {registers:4} registers {stack:4} bytes  {blocks}", flush=True)

    return compile_for


def read_usage(binary: bytes) -> tuple[int, int]:
    """Return the registers of a thread, and its bytes outside of them."""
    program = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        command = [str(program), "-res-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"REG:(\d+) STACK:(\d+)", text.stdout + text.stderr)
    assert found is not None
    return int(found[1]), int(found[2])


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    layout = torch.channels_last if len(shape) == 4 else torch.contiguous_format
    return torch.empty(shape, dtype=dtype).contiguous(memory_format=layout)


def compile_step(images: int, size: int, k: int, dtype: torch.dtype) -> None:
    program = Program(2, k, newest=True, sweeps=1, y=True)
    parameters = []
    for c in map(program.inputs, range(program.stages)):
        parameters += [empty(c), empty(c), empty(k, c, 1, 1), empty(k), empty(k), empty(k, k, 3, 3)]
    result, kept = launch_forward.run_forward(empty(images, k, size, size, dtype=dtype), parameters, program, 1e-3)
    launch_backward.run_backward(torch.empty_like(result), kept, program)


def compile_function(images: int, size: int, k: int, dtype: torch.dtype) -> None:
    width = fused_width(k)
    y, weight = empty(images, k, size, size), torch.empty(width, 3, 3, width, dtype=dtype)
    for constants in ([empty(size * size, width)] * 2, []):  # with the time, which RKNN does not read, and without
        result, *kept = ode.ode_function(y, empty(width), [weight] * 2, constants, [empty(k)] * 6, 1e-3)
        ode.ode_function_backward(result, kept, [weight] * 2, bool(constants), y.dtype)


def compile_stem(
    images: int, channels: int, size: int, k: int, side: int, stride: int, padding: int, dtype: torch.dtype
) -> None:
    is_first = channels <= 4  # which reads float32 and needs no gradient of the images
    x = empty(images, channels, size, size, dtype=torch.float32 if is_first else dtype)
    weight = empty(k, channels, side, side)
    result = stem.stem(x, weight, empty(k), stride, padding, dtype)
    stem.stem_weights(result, x, side, stride, padding)
    if not is_first:
        stem.stem_input(result, weight, size, size, stride, padding)


def no_convolution(x: Tensor, *others: Any, **options: Any) -> Tensor:
    """Stand in for a convolution of torch's, which would take long here."""
    return torch.empty_like(x)


def no_gradients(gradient: Tensor, x: Tensor, weight: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    """Stand in for its gradients."""
    return torch.empty_like(x), torch.empty_like(weight)


def main(*precisions: str) -> None:
    driver.set_active(NoDevice())
    jit.KernelInterface.__getitem__ = compile_only
    torch.conv2d = no_convolution  # type: ignore[assignment]
    launch_backward._convolution_backward = no_gradients  # type: ignore[assignment]
    torch.set_grad_enabled(False)
    for precision in precisions or DTYPES:
        print(precision)
        for shape in STEMS:
            compile_stem(*shape, DTYPES[precision])
        for images, size, k in STEPS:
            compile_step(images, size, k, DTYPES[precision])
            compile_function(images, size, k, DTYPES[precision])


seen: set[str] = set()
if __name__ == "__main__":
    main(*sys.argv[1:])
