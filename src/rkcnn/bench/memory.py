"""The peak memory of a training step, each time in a fresh process.

The child is `python -m rkcnn.bench.memory NETWORK BATCH PRECISION ENGINE DEVICE PEER`; PEER is - for our own code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rkcnn.bench.plan import CannotRun, PeerChoice
from rkcnn.error import InputError, is_out_of_memory

if TYPE_CHECKING:
    import torch

STEPS = 2  # the optimiser's buffers are there from the second on


class PeakMemory(NamedTuple):
    """The memory of a process, in bytes: torch's on a GPU, the resident size elsewhere."""

    peak: int
    idle: int  # the peak before the network was built, with all libraries; 0 on a GPU


def measure_peak(
    network: str, batch: int, precision: str, engine: str, device: str, peer: PeerChoice | None
) -> PeakMemory:
    """Return the peak memory of a training step in a new process.

    Raises CannotRun or InputError as the step does, and CannotRun if it takes more memory than there is.
    """
    words = [network, str(batch), precision, engine, device, "-" if peer is None else str(peer)]
    done = subprocess.run(
        [sys.executable, "-m", "rkcnn.bench.memory", *words], capture_output=True, text=True, check=False
    )
    line = next((line for line in done.stdout.splitlines() if line.startswith("{")), None)
    if line is None and done.returncode < 0:
        raise CannotRun(f"its process was killed by signal {-done.returncode}, probably for want of memory")
    if line is None:
        why = (done.stderr.strip().splitlines() or [f"its process ended with code {done.returncode}"])[-1]
        raise InputError(f"the memory of {network} at batch {batch} can't be measured: {why}")
    found = json.loads(line)
    if "cannot" in found:
        raise CannotRun(found["cannot"])
    if "error" in found:
        raise InputError(found["error"])
    return PeakMemory(found["peak"], found["idle"])


def take_steps(
    network: str, batch: int, precision: str, engine: str, device: torch.device, peer: PeerChoice | None
) -> PeakMemory:
    """Build a training step in this process, take it, and return the peak.

    On a CPU a step of a tiny network comes first, so that the libraries that any step loads count as idle.
    """
    from rkcnn.bench.training_step import our_training_step, peer_training_step
    from rkcnn.run.device import forget_peak, peak_bytes

    forget_peak(device)
    idle = 0
    if device.type != "cuda":
        our_training_step("Identity@k=1", 1, "fp32", "eager", 1, device, STEPS).take_turn(STEPS)
        idle = peak_bytes(device)
    if peer is None:
        contender = our_training_step(network, batch, precision, engine, 1, device, STEPS)
    else:
        contender = peer_training_step(peer, network, batch, device, compare=False)  # the parent has done so
    contender.take_turn(STEPS)
    return PeakMemory(peak_bytes(device), idle)


def main(arguments: Sequence[str]) -> None:
    """Run as the child: print one JSON object."""
    from rkcnn.run.device import pick_device

    network, batch, precision, engine, device, named = arguments
    name, _, path = named.partition("=")
    peer = None if named == "-" else PeerChoice(name, Path(path) if path else None)
    try:
        found = take_steps(network, int(batch), precision, engine, pick_device(device), peer)
    except CannotRun as reason:
        print(json.dumps({"cannot": str(reason)}))
    except InputError as error:
        print(json.dumps({"error": str(error)}))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        print(json.dumps({"cannot": "too little memory"}))
    else:
        print(json.dumps(found._asdict()))


if __name__ == "__main__":
    main(sys.argv[1:])
