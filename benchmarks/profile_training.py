"""What a training step spends its time on: the time of its kernels, and those that take most of it.

    python benchmarks/profile_training.py [NETWORK [BATCH [PRECISION [ENGINE]]]]

Prints the microseconds of all kernels of a step by torch.profiler, their number, and the kernels that take most of the
time. The step is that of `rkcnn bench train`: by the paper's recipe, on noise. On a CPU it prints operators instead.
"""

from __future__ import annotations

import sys

import torch
from torch.profiler import ProfilerActivity, profile

from rkcnn.bench.contender import create_network
from rkcnn.bench.training_step import default_batch, our_training_step

WARM_UP, STEPS, SHOWN = 5, 10, 30


def main(name: str, batch: int, precision: str, engine: str) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    steps = STEPS if device.type == "cuda" else 1
    step = our_training_step(name, batch, precision, engine, 1, device, max(WARM_UP, steps))
    step.take_turn(WARM_UP if device.type == "cuda" else 1)
    activity = ProfilerActivity.CUDA if device.type == "cuda" else ProfilerActivity.CPU
    with profile(activities=[activity]) as recorded:
        step.take_turn(steps)
    times = [
        (row.self_device_time_total if device.type == "cuda" else row.self_cpu_time_total, row.count, row.key)
        for row in recorded.key_averages()
    ]
    total, count = sum(time for time, _, _ in times) / steps, sum(count for _, count, _ in times) / steps
    print(f"{name}, batch {batch}, {precision}, {engine}: {total:.1f} us of {count:.0f} kernels in a step")
    for time, calls, key in sorted(times, reverse=True)[:SHOWN]:
        print(f"{time / steps:10.1f} us {calls / steps:6.1f} calls  {key[:90]}")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    network = given.get(0, "RKCNN-R-2@k=32")
    images = int(given.get(1, default_batch(create_network(network).channels)))
    main(network, images, given.get(2, "fp32"), given.get(3, "graph" if torch.cuda.is_available() else "eager"))
