"""What a network costs, exactly, without running it: all on the meta device."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

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


def cost(network: nn.Module, size: int | tuple[int, int]) -> Cost:
    """Count a network on one image of that size (height and width, or both the same)."""
    ghost = copy.deepcopy(network).to("meta")
    image = ghost_image(ghost, size)
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        ghost.eval()(image)
    periods = [module for module in ghost.modules() if isinstance(module, Period)]
    return Cost(
        params=sum(p.numel() for p in network.parameters()),
        flops=counter.get_total_flops(),
        exact=all(period.exact for period in periods),
        paper_flops=paper_flops(ghost, image),
        evaluations=sum(period.evaluations for period in periods) if periods else None,
        unit=periods[0].unit if periods else "",
        activation_bytes=activation_bytes(ghost.train(), image),
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
        self.paused = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if not self.paused:
            op = func.overloadpacket
            if op is torch.ops.aten.convolution:
                weight, bias = args[1], args[2]
                self.total += (2 * weight[0].numel() - 1 + (bias is not None)) * out.numel()
            elif op is torch.ops.aten.avg_pool2d:
                window = args[1]
                self.total += (window[0] * window[-1] - 1) * out.numel()
            elif op is torch.ops.aten.add and isinstance(args[1], Tensor) and args[0].shape == args[1].shape:
                self.total += out.numel() if out.dim() == 4 else 0
        return out


def paper_flops(network: nn.Module, image: Tensor) -> int | None:
    """The paper's FLOP column for a network and an image on the meta device."""
    if any(isinstance(module, Period) and not module.paper_counts for module in network.modules()):
        return None
    counter = PaperCounter()

    def pool(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        batch, channels, height, width = args[0].shape
        counter.total += batch * channels * (height * width - 1)

    def pause(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        counter.paused += 1

    def charge(module: nn.Module, args: tuple[Tensor, ...], out: Any) -> None:
        """Not what the solver really runs but what the paper charges for it: SPEC 2 and 4."""
        counter.paused -= 1
        due = module.paper_charge
        assert isinstance(due, PaperCharge)
        before = counter.total
        f = module.get_submodule("f")
        f(args[0]) if isinstance(f, nn.Sequential) else f(0.0, args[0])
        counter.total = before + due.evaluations * (counter.total - before) + due.operations * args[0].numel()

    hooks = []
    for module in network.modules():
        if isinstance(module, Readout):
            hooks.append(module.register_forward_pre_hook(pool))
        elif getattr(module, "paper_charge", None) is not None:
            hooks.append(module.register_forward_pre_hook(pause))
            hooks.append(module.register_forward_hook(charge))
    with torch.no_grad(), counter:
        network.eval()(image)
    for hook in hooks:
        hook.remove()
    return counter.total


def activation_bytes(network: nn.Module, image: Tensor) -> int:
    """Bytes of the unique storages that autograd saves in one training pass, parameters and buffers left out."""
    own = {x.untyped_storage()._cdata for x in (*network.parameters(), *network.buffers())}
    kept = {}

    def save(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage  # held, so that no other storage can take its place
        return x

    with torch.autograd.graph.saved_tensors_hooks(save, lambda x: x):
        network(image)
    return sum(storage.nbytes() for storage in kept.values())
