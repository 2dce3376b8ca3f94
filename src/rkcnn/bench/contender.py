"""One contender of a bench: something that takes steps on a device, with what is known of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from rkcnn.model.backends import backends_set_to
from rkcnn.model.cost import cost, default_size
from rkcnn.model.create import create_model, usual_channels
from rkcnn.model.network import Network, Published
from rkcnn.record.bench import Measurement

TORCHS_OWN = "torch's own"  # a peer's precision: on a GPU its convolutions are in tf32 and its products in fp32


@dataclass(frozen=True)
class Contender:
    """Takes steps; `advance(n)` takes n of each of its runs, without waiting for the device."""

    measurement: Measurement
    device: torch.device
    advance: Callable[[int], None]
    precision: str  # what `torch.backends` is set to while it takes steps

    def take_turn(self, steps: int) -> float:
        """Take so many steps of each run; return the seconds of one step of one run."""
        with matrix_units(self.precision):
            synchronise(self.device)
            start = time.perf_counter()
            self.advance(steps)
            synchronise(self.device)
        return (time.perf_counter() - start) / steps / self.measurement.at_once

    def count_kernels(self) -> float | None:
        """Return how many kernels one step of one run launches on the GPU; None elsewhere."""
        if self.device.type != "cuda":
            return None
        from torch.profiler import ProfilerActivity, profile

        both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        with profile(activities=both, acc_events=True) as profiler:  # without acc_events it warns, once in a process
            self.take_turn(1)
        events = [event for event in profiler.events() or () if str(event.device_type).endswith("CUDA")]
        kernels = [
            event
            for event in events
            if not (event.name.startswith(("Memcpy", "Memset")) or getattr(event, "is_user_annotation", False))
        ]
        return len(kernels) / self.measurement.at_once if kernels else None


def synchronise(device: torch.device) -> None:
    """Wait until the device has done all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def matrix_units(precision: str) -> Iterator[None]:
    """A context in which float32 products and convolutions are rounded on a GPU as the precision allows."""
    own = precision == TORCHS_OWN
    with backends_set_to("fp32" if own else precision, benchmark=own or None):  # as the authors' script sets it
        if own:
            torch.backends.cudnn.allow_tf32 = True
        yield


def create_network(name: str, seed: int = 0) -> Network | Published:
    """Return a network for ten classes with new weights: for grey images if it has one period, else for colour."""
    torch.manual_seed(seed)
    return create_model(name, 10, usual_channels(name))


def image_size(network: Network | Published) -> int:
    """Return the height and width of the images: 28 for MNIST's networks, 32 for CIFAR's."""
    return default_size(network.channels)


def count_flops(network: nn.Module, batch: int, training: bool) -> float | None:
    """Return the FLOPs of a step; None where the data decides. A backward pass counts as two forward passes."""
    counted = cost(network)
    return counted.flops * batch * (3.0 if training else 1.0) if counted.exact else None
