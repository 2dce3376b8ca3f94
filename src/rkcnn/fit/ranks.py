"""Several processes that train one network together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from rkcnn.error import InputError
from rkcnn.model.layers import BatchNorm
from rkcnn.model.steps.ode import OdePeriod
from rkcnn.solvers.batch_reducer import BatchReducer

T = TypeVar("T")


class _Sum(torch.autograd.Function):
    """s = sum_r x_r on every rank; every rank's loss reads s, so dL/dx_r = sum_r' dL_r'/ds."""

    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        whole = part.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return _Sum.apply(grad)


class Shared(BatchReducer):
    """A batch of which every rank holds a share."""

    def mean(self, part: Tensor, count: float) -> tuple[Tensor, Tensor]:
        total, counts = self.sum(torch.cat([part * count, part.new_tensor([count])])).split([len(part), 1])
        return total / counts.detach(), counts.detach()

    def sum(self, part: Tensor) -> Tensor:
        return _Sum.apply(part)

    def max(self, part: Tensor) -> Tensor:
        largest = part.nan_to_num(nan=torch.inf)  # what a maximum makes of NaN depends on the order of the ranks
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        return largest

    def all(self, condition: Tensor) -> bool:
        return not bool(self.max((~condition).any().float()))


@dataclass(frozen=True)
class Ranks:
    """Which of how many processes this is; one alone is the ordinary case. Only rank 0 writes."""

    rank: int = 0
    world: int = 1
    wrapped: list[nn.Module] = field(default_factory=list, compare=False, repr=False)  # what `wrap` gave

    @property
    def writes(self) -> bool:
        return self.rank == 0

    def wrap(self, network: nn.Module, sync_norm: bool = False) -> nn.Module:
        """The network whose backward pass averages gradients over all ranks.

        In training its solvers judge the batch of all ranks, so that all take the same steps; with `sync_norm`
        its batch norms take the statistics of that batch too. In evaluation a rank asks nobody.
        """
        if self.world == 1:
            return network
        reducer = Shared()
        for module in network.modules():
            if isinstance(module, OdePeriod):
                module.solver = replace(module.solver, reducer=reducer)
            elif isinstance(module, BatchNorm) and sync_norm:
                module.reducer = reducer
        self.wrapped.append(DistributedDataParallel(network))
        return self.wrapped[-1]

    def part(self) -> None:
        """Empty what `wrap` gave, which is of no use without the others and would keep their group in being.

        A group's threads end with the last who knows it. One that is left while Python ends takes its process down
        with SIGABRT when it frees its last tensor (pytorch issue 190489), and a traceback may know a network for as
        long. It must not end with DistributedDataParallel's reducer either: that joins the threads under the
        interpreter's lock, for which they may be waiting (56297).
        """
        for wrapped in self.wrapped:
            vars(wrapped).clear()
        self.wrapped.clear()

    def check_share(self, images: int) -> None:
        """Refuse a batch that leaves a rank without an image."""
        if images < self.world:
            raise InputError(
                f"the last batch of an epoch has {images} images for {self.world} ranks; "
                "change the recipe's batch or say drop_last=on"
            )

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all ranks."""
        return Shared().sum(values) if self.world > 1 else values

    def most(self, value: int) -> int:
        """The largest value of any rank, exchanged between the processes' hosts: no device is waited for."""
        return int(Shared().max(torch.tensor(float(value)))) if self.world > 1 else value

    def first(self, act: Callable[[], T]) -> T:
        """What `act` gave on rank 0, where alone it is called; an InputError there is every rank's."""
        if self.world == 1:
            return act()
        told: list[Any] = [None, None]
        if self.rank == 0:
            try:
                told[0] = act()
            except InputError as error:
                told[1] = str(error)
        dist.broadcast_object_list(told, device=torch.device("cpu"))
        if told[1] is not None:
            raise InputError(told[1])
        return told[0]

    @torch.no_grad()
    def follow(self, tensors: Iterable[Tensor]) -> None:
        """Copy rank 0's values into every rank's."""
        if self.world > 1:
            for tensor in tensors:
                value = tensor.contiguous()
                dist.broadcast(value, 0)
                tensor.copy_(value)


@contextmanager
def join(device: torch.device) -> Iterator[tuple[Ranks, torch.device]]:
    """Join the other ranks if torchrun started this process, each with a device of its own, and leave them again.

    A process group that is there already is used, and left as it was.
    """
    world = _whole_number("WORLD_SIZE", 1, low=1)
    if world == 1:
        yield Ranks(), device
        return
    missing = [name for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise InputError(f"WORLD_SIZE={world} given without {', '.join(missing)}; start several ranks with torchrun")
    rank, local, _ = (_whole_number(name) for name in ("RANK", "LOCAL_RANK", "MASTER_PORT"))
    local_ranks = _whole_number("LOCAL_WORLD_SIZE", local + 1, low=1)
    if rank >= world:
        raise InputError(f"RANK={rank} given of WORLD_SIZE={world}; it must be a whole number from 0 to {world - 1}")
    if device.type == "cuda":
        device = _own_gpu(local, local_ranks)
        torch.cuda.set_device(device)
    started = not dist.is_initialized()
    if started:
        _meet(device)
    ranks = Ranks(dist.get_rank(), dist.get_world_size())
    try:
        yield ranks, device
        if started:
            dist.barrier()  # none hangs up while another still reads
    finally:
        ranks.part()
        if started:
            dist.destroy_process_group()


def _whole_number(name: str, default: int = 0, low: int = 0) -> int:
    """Of a variable that torchrun sets."""
    text = os.environ.get(name, str(default))
    if not (text.isascii() and text.isdigit() and int(text) >= low):
        raise InputError(f"{name}={text} given; it must be a whole number from {low} on, or be left to torchrun")
    return int(text)


def _own_gpu(local: int, ranks: int) -> torch.device:
    here = torch.cuda.device_count()
    if ranks > here:
        raise InputError(
            f"{ranks} ranks given for the {here} GPU(s) of this machine; start at most {here}, or say --device cpu"
        )
    return torch.device("cuda", local)


def _meet(device: torch.device) -> None:
    """Start a process group; under a name of its own in the store, where an earlier one's addresses remain."""
    store, rank, world = next(iter(rendezvous("env://")))
    meeting = (store.add("rkcnn/joined", 1) - 1) // world
    backend, bound = ("cpu:gloo,cuda:nccl", device) if device.type == "cuda" else ("gloo", None)
    dist.init_process_group(
        backend, store=PrefixStore(f"rkcnn/{meeting}", store), rank=rank, world_size=world, device_id=bound
    )
