"""What a network costs, exactly, without running it: all on the meta device."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from torch.utils.hooks import RemovableHandle

from rkcnn.model.frame import Readout
from rkcnn.model.period import PaperCharge, Period


@dataclass(frozen=True)
class Cost:
    """The cost of one image.

    flops            2 x multiply-accumulate of convolutions and linear layers; where the count of evaluations
                     depends on the data (not `exact`), the least that any data can take
    paper_flops      in the paper's own convention (SPEC 2), None where it has none for this network
    evaluations      of f, or of stage networks, as `unit` says; None for the published originals
    activation_bytes unique storages that training one image keeps for the backward pass, without parameters
    """

    params: int
    flops: int
    exact: bool
    paper_flops: int | None
    evaluations: int | None
    unit: str
    activation_bytes: int


@torch.inference_mode(False)
@torch.enable_grad()
def cost(network: nn.Module, size: int | tuple[int, int]) -> Cost:
    """Count a network on one image of that size (height and width, or both the same), in one pass."""
    ghost = copy.deepcopy(network).to("meta", torch.float32).train().requires_grad_()
    image = ghost_image(ghost, size)
    flops, paper, kept = FlopCounterMode(display=False), PaperCounter(), Kept(ghost)
    with charging(ghost, paper), kept, flops, paper:
        ghost(image)
    periods = [module for module in ghost.modules() if isinstance(module, Period)]
    return Cost(
        params=sum(p.numel() for p in network.parameters()),
        flops=flops.get_total_flops(),
        exact=all(period.exact for period in periods),
        paper_flops=paper.total if all(period.paper_counts for period in periods) else None,
        evaluations=sum(period.evaluations for period in periods) if periods else None,
        unit=periods[0].unit if periods else "",
        activation_bytes=kept.bytes,
    )


def ghost_image(network: nn.Module, size: int | tuple[int, int]) -> Tensor:
    height, width = (size, size) if isinstance(size, int) else size
    channels = network.channels
    assert isinstance(channels, int)
    return torch.empty(1, channels, height, width, device="meta")


class PaperCounter(TorchDispatchMode):
    """FLOPs as the paper counts them.

    conv      (2 c k^2 - 1 + [bias]) for each output element
    adds      1 for each element of a sum of two states
    avg pool  window - 1 for each output element
    Nothing for linear layers, attention, norms, ReLU and concatenation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        op = func.overloadpacket
        if op is torch.ops.aten.native_batch_norm:
            return _batch_norm(args[0])
        out = func(*args, **(kwargs or {}))
        if op is torch.ops.aten.convolution:
            weight, bias = args[1], args[2]
            self.total += (2 * weight[0].numel() - 1 + (bias is not None)) * out.numel()
        elif op is torch.ops.aten.avg_pool2d:
            window = args[1]
            self.total += (window[0] * window[-1] - 1) * out.numel()
        elif op is torch.ops.aten.add and isinstance(args[1], Tensor) and args[0].shape == args[1].shape:
            self.total += out.numel() if out.dim() == 4 else 0
        return out


def _batch_norm(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What training's batch norm gives and keeps of ghosts; torch finds the same shapes by some 16 operations."""
    mean = x.new_empty(x.shape[1])
    return torch.empty_like(x), mean, torch.empty_like(mean)


@contextmanager
def charging(network: nn.Module, counter: PaperCounter) -> Iterator[None]:
    """Global pools cost height x width - 1 a channel; a solve costs what the paper charges, not what it runs."""
    hooks: list[RemovableHandle] = []

    def pool(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        batch, channels, height, width = args[0].shape
        counter.total += batch * channels * (height * width - 1)

    def watch(module: nn.Module, due: PaperCharge) -> None:
        start: list[int] = []
        calls: list[int] = []
        f = module.get_submodule("f")
        hooks.append(module.register_forward_pre_hook(lambda *_: start.append(counter.total)))
        hooks.append(f.register_forward_pre_hook(lambda *_: calls.append(-counter.total)))
        hooks.append(f.register_forward_hook(lambda *_: calls.append(calls.pop() + counter.total)))

        def settle(module: nn.Module, args: tuple[Tensor, ...], out: object) -> None:
            counter.total = start.pop() + due.evaluations * calls[0] + due.operations * args[0].numel()

        hooks.append(module.register_forward_hook(settle))

    for module in network.modules():
        due = getattr(module, "paper_charge", None)
        if isinstance(module, Readout):
            hooks.append(module.register_forward_pre_hook(pool))
        elif due is not None:
            watch(module, due)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class Kept(torch.autograd.graph.saved_tensors_hooks):
    """The unique storages that autograd saves while it is entered, a network's own tensors left out."""

    def __init__(self, network: nn.Module) -> None:
        own = {x.untyped_storage()._cdata for x in (*network.parameters(), *network.buffers())}
        self.storages: dict[int, torch.UntypedStorage] = {}  # held, so that no other can take an address

        def save(x: Tensor) -> Tensor:
            storage = x.untyped_storage()
            if storage._cdata not in own:
                self.storages[storage._cdata] = storage
            return x

        super().__init__(save, lambda x: x)

    @property
    def bytes(self) -> int:
        return sum(storage.nbytes() for storage in self.storages.values())
