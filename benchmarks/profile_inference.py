"""What a forward pass of the fused network spends its time on: milliseconds and the kernels that take most of them.

    python benchmarks/profile_inference.py [NETWORK [BATCH ...]]

Prints, for each batch, the fused network's time as a CUDA graph in bf16, the number of its kernels, and those that take
most of the time by torch.profiler. On a CPU it prints the operators of the eager fused network instead.
"""

from __future__ import annotations

import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

from rkcnn.bench.contender import create_network, image_size

PASSES, SHOWN = 50, 18


def main(name: str, batches: list[int]) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = create_network(name).eval().to(device)
    activity = ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU
    passes = PASSES if device.type == "cuda" else 3
    for batch in batches:
        fused = network.fused("bf16")
        fused.batches = (batch,)
        images = torch.randn(batch, network.channels, image_size(network), image_size(network), device=device)
        start = time.perf_counter()
        fused(images)
        print(
            f"batch {batch}: {fused.engine}, prepared in {time.perf_counter() - start:.1f} s {fused.note}", flush=True
        )
        for what in (1, passes):
            _wait(device)
            start = time.perf_counter()
            for _ in range(what):
                fused(images)
            _wait(device)
        print(f"batch {batch}: {(time.perf_counter() - start) / passes * 1e3:.3f} ms a pass", flush=True)
        with profile(activities=[*{ProfilerActivity.CPU, activity}]) as profiler:
            fused(images)
            _wait(device)
        kernels: dict[str, list[float]] = {}
        for event in profiler.events() or ():
            if str(event.device_type).endswith(activity.name) and not getattr(event, "is_user_annotation", False):
                kernels.setdefault(event.name, []).append(event.device_time or event.self_cpu_time_total)
        total = sum(sum(times) for times in kernels.values())
        print(f"{sum(map(len, kernels.values()))} kernels, {total:.0f} us together")
        for kernel, times in sorted(kernels.items(), key=lambda pair: -sum(pair[1]))[:SHOWN]:
            print(f"{sum(times):9.1f} us  {len(times):4} x  {kernel[:110]}")


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(words[0] if words else "RKCNN-I-2_2_2@k=120", [int(word) for word in words[1:]] or [512, 1])
