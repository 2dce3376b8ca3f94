"""What a network costs, counted exactly on the meta device, where nothing is computed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from torch.utils.hooks import RemovableHandle

from rkcnn.error import InputError
from rkcnn.model.frame import Readout, Transition
from rkcnn.model.limits import check_activations
from rkcnn.model.period import PaperSolveCost, Period


@dataclass(frozen=True)
class Cost:
    """What one image costs.

    params           trainable numbers
    flops            2 x multiply-accumulate of convolutions and linear layers
    exact            False where the number of evaluations depends on the data; then flops, evaluations and
                     activation_bytes are the least that any data can take
    paper_flops      FLOPs in the paper's own convention (docs/costs.md); None where it does not cover this network
    evaluations      of f, or of stage networks, as `unit` says; None for the published originals
    activation_bytes memory that training on one image keeps for the backward pass, without parameters
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
def cost(network: nn.Module, size: int | tuple[int, int] | None = None) -> Cost:
    """Count what a network costs on one image, without changing the network.

    `size` is the height and width of the image, as one number or two. Without it the image is that of the paper's
    data with as many channels: 28 for one channel (MNIST), else 32 (SVHN and CIFAR).
    """
    if not isinstance(network, nn.Module) or not isinstance(getattr(network, "channels", None), int):
        raise InputError(
            f"a {type(network).__name__} given; cost counts networks that `rkcnn.create_model` made; give one, or the "
            "`network` of a trained classifier"
        )
    image = meta_image(network, size)
    copied = copy.deepcopy(network).to("meta", torch.float32).train().requires_grad_()
    for module in copied.modules():
        if isinstance(module, Transition):
            module.pools_first = False  # as the network is defined, whichever engine runs it
    flops, paper, saved = FlopCounterMode(display=False), PaperCounter(), SavedTensors(copied)
    with count_solves_as_paper(copied, paper), saved, flops, paper, FewerOperations():
        copied(image)
    periods = [module for module in copied.modules() if isinstance(module, Period)]
    return Cost(
        params=sum(p.numel() for p in network.parameters()),
        flops=flops.get_total_flops(),
        exact=all(period.exact for period in periods),
        paper_flops=paper.total if all(period.has_paper_flops for period in periods) else None,
        evaluations=sum(period.evaluations for period in periods) if periods else None,
        unit=periods[0].unit if periods else "",
        activation_bytes=saved.bytes,
    )


def default_size(channels: int) -> int:
    """Return the height and width of the paper's images with so many channels."""
    return 28 if channels == 1 else 32


def meta_image(network: nn.Module, size: int | tuple[int, int] | None = None) -> Tensor:
    """Return one image on the meta device, of that size or of the default one.

    Raises InputError if the network's activations would take more memory than allowed (`rkcnn.model.limits`).
    """
    channels = network.channels
    assert isinstance(channels, int)
    size = default_size(channels) if size is None else size
    sides = (size, size) if isinstance(size, Integral) else size
    if not (
        isinstance(sides, tuple | list) and len(sides) == 2 and all(isinstance(n, Integral) and n > 0 for n in sides)
    ):
        raise InputError(f"`size={size!r}` given; it is a height and width above 0, as in 32 or (32, 48)")
    height, width = map(int, sides)
    check_activations(network, (height, width))
    return torch.empty(1, channels, height, width, device="meta")


class FewerOperations(TorchDispatchMode):
    """Returns the shapes that batch norm in training, ReLU and concatenation give at once.

    To find them itself, torch runs up to 16 operations in Python for each, and every one passes through all counters;
    none of them counts for anything.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        match func.overloadpacket:
            case torch.ops.aten.native_batch_norm:
                mean = args[0].new_empty(args[0].shape[1])
                return args[0].new_empty(args[0].shape), mean, mean.new_empty(mean.shape)
            case torch.ops.aten.relu:
                return args[0].new_empty(args[0].shape)
            case torch.ops.aten.cat if args[1:] == (1,) and not kwargs:
                first, *others = args[0]
                shape = list(first.shape)
                shape[1] += sum(each.shape[1] for each in others)
                return first.new_empty(shape)
        return func(*args, **(kwargs or {}))


class PaperCounter(TorchDispatchMode):
    """Counts FLOPs as the paper does.

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


@contextmanager
def count_solves_as_paper(network: nn.Module, counter: PaperCounter) -> Iterator[None]:
    """A context in which the counter gets what the paper counts for a global pool and for a solve.

    A pool costs height x width - 1 for each channel; a solve costs its `paper_solve_cost`, not what it runs.
    """
    hooks: list[RemovableHandle] = []

    def pool(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        batch, channels, height, width = args[0].shape
        counter.total += batch * channels * (height * width - 1)

    def count_solve(module: nn.Module, charge: PaperSolveCost) -> None:
        start: list[int] = []
        calls: list[int] = []
        f = module.get_submodule("f")
        hooks.append(module.register_forward_pre_hook(lambda *_: start.append(counter.total)))
        hooks.append(f.register_forward_pre_hook(lambda *_: calls.append(-counter.total)))
        hooks.append(f.register_forward_hook(lambda *_: calls.append(calls.pop() + counter.total)))

        def replace_count(module: nn.Module, args: tuple[Tensor, ...], out: object) -> None:
            counter.total = start.pop() + charge.evaluations * calls[0] + charge.operations * args[0].numel()

        hooks.append(module.register_forward_hook(replace_count))

    for module in network.modules():
        charge = getattr(module, "paper_solve_cost", None)
        if isinstance(module, Readout):
            hooks.append(module.register_forward_pre_hook(pool))
        elif charge is not None:
            count_solve(module, charge)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class SavedTensors(torch.autograd.graph.saved_tensors_hooks):
    """Collects the storages that autograd saves inside this context, without the network's own tensors."""

    def __init__(self, network: nn.Module) -> None:
        own = {x.untyped_storage()._cdata for x in (*network.parameters(), *network.buffers())}
        self.storages: dict[int, torch.UntypedStorage] = {}  # kept alive, so that no other gets the same address

        def save(x: Tensor) -> Tensor:
            storage = x.untyped_storage()
            if storage._cdata not in own:
                self.storages[storage._cdata] = storage
            return x

        super().__init__(save, lambda x: x)

    @property
    def bytes(self) -> int:
        return sum(storage.nbytes() for storage in self.storages.values())
