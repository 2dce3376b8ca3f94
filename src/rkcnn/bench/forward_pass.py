"""Forward passes in evaluation: ours eagerly, compiled, as a CUDA graph or fused for inference, and a peer's."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rkcnn.bench.contender import (
    TORCHS_OWN,
    Contender,
    count_flops,
    create_network,
    image_size,
    matrix_units,
)
from rkcnn.bench.peers.same_outputs import build_peer
from rkcnn.bench.plan import CannotRun, PeerChoice
from rkcnn.model.compiling import NotCompiled, compiling, why_not_compiled
from rkcnn.model.cost import cost
from rkcnn.model.fused import capture_graph
from rkcnn.model.layout import choose_layout
from rkcnn.model.network import Network, Published
from rkcnn.record.bench import Measurement

WORK = "forward pass"
FUSED = {"fused": "graph", "fused-eager": "eager"}  # `network.fused()`: compiled, on a GPU as a CUDA graph; and eager


def our_forward_pass(name: str, batch: int, precision: str, engine: str, device: torch.device) -> Contender:
    """Return forward passes of our network, in the layout that training has; CannotRun if the engine can't."""
    network = create_network(name).eval()
    flops, size = count_flops(network, batch, training=False), image_size(network)
    layout = choose_layout(network, device)
    network.to(device).to(memory_format=layout)  # type: ignore[call-overload]
    images = _images(batch, network.channels, size, device).contiguous(memory_format=layout)
    if engine in ("compile", "graph", "fused") and not cost(network).exact:
        raise CannotRun("the number of solver steps depends on the data")

    def compute(images: Tensor) -> Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
            return network(images)

    with torch.inference_mode(), matrix_units(precision):
        if engine in FUSED:
            run = _fuse(network, precision, FUSED[engine], images)
        elif engine == "compile":
            run = _compile(compute, images)
        elif engine == "graph":
            if device.type != "cuda":
                raise CannotRun("a CUDA graph needs a GPU")
            run = capture_graph(compute, images)
        else:
            run = lambda: compute(images)  # noqa: E731
    measurement = Measurement(WORK, name, batch, "rkcnn", engine, precision, flops=flops)
    return Contender(measurement, device, _repeat(run), precision)


def peer_forward_pass(peer: PeerChoice, name: str, batch: int, device: torch.device) -> Contender:
    """Return forward passes of a peer's network with our weights: eager, in the precision that torch has by itself."""
    ours = create_network(name)
    size = image_size(ours)
    flops = count_flops(ours, batch, training=False)
    network, difference = build_peer(peer, ours, size)
    network.to(device).eval()
    images = _images(batch, ours.channels, size, device)
    precision = "tf32" if device.type == "cuda" else "fp32"
    measurement = Measurement(WORK, name, batch, peer.name, "eager", precision, flops=flops, difference=difference)
    return Contender(measurement, device, _repeat(lambda: network(images)), TORCHS_OWN)


def _images(batch: int, channels: int, size: int, device: torch.device) -> Tensor:
    return torch.randn(batch, channels, size, size, generator=torch.Generator().manual_seed(0)).to(device)


def _repeat(run: Callable[[], object]) -> Callable[[int], None]:
    def advance(count: int) -> None:
        with torch.inference_mode():
            for _ in range(count):
                run()

    return advance


def _fuse(network: Network | Published, precision: str, engine: str, images: Tensor) -> Callable[[], object]:
    fused = network.fused(precision, engine=engine)
    if engine != "eager" and fused.engine == "eager":
        raise CannotRun(fused.note)
    fused.batches = (len(images),)  # of its own size, not padded
    fused(images)
    if fused.note.startswith("not compiled"):
        raise CannotRun(fused.note)
    return lambda: fused(images)


def _compile(compute: Callable[[Tensor], Tensor], images: Tensor) -> Callable[[], object]:
    if reason := why_not_compiled(images.device):
        raise CannotRun(reason)
    compiled = torch.compile(compute, dynamic=False)
    try:
        with compiling():
            compiled(images)
    except NotCompiled as error:
        raise CannotRun(str(error)) from error
    return lambda: compiled(images)
