"""Several processes ("ranks") that train one network together."""

from __future__ import annotations

import os
import warnings
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
from rkcnn.model.batch_norm import BatchNorm
from rkcnn.model.steps.ode import OdePeriod
from rkcnn.solvers.solver_step import BatchReducer

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


class RankReducer(BatchReducer):
    """Reduces over a batch of which every rank holds a share."""

    def mean(self, part: Tensor, count: float) -> tuple[Tensor, Tensor]:
        total, counts = self.sum(torch.cat([part * count, part.new_tensor([count])])).split([len(part), 1])
        return total / counts.detach(), counts.detach()

    def sum(self, part: Tensor) -> Tensor:
        return _Sum.apply(part)

    def max(self, part: Tensor) -> Tensor:
        largest = part.nan_to_num(nan=torch.inf)  # the maximum of a NaN would depend on the order of the ranks
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        return largest

    def all(self, condition: Tensor) -> bool:
        return not bool(self.max((~condition).any().float()))


@dataclass(frozen=True)
class Ranks:
    """The number of this process (`rank`) among `world`; by default it is alone. Only rank 0 writes files."""

    rank: int = 0
    world: int = 1
    grouped: bool = False  # whether there is a process group, which may have one rank
    wrapped: list[nn.Module] = field(default_factory=list, compare=False, repr=False)  # by `wrap`

    @property
    def writes(self) -> bool:
        """Whether this process writes files and talks to the user."""
        return self.rank == 0

    def wrap(self, network: nn.Module, sync_norm: bool = False) -> nn.Module:
        """Return the network in a form whose backward pass averages gradients over all ranks.

        In training its solvers decide by the batch of all ranks, so that every rank takes the same steps; with
        `sync_norm` its batch norms use the statistics of that batch too. Evaluation needs no other rank.
        """
        if not self.grouped:
            return network
        reducer = RankReducer()
        for module in network.modules():
            if isinstance(module, OdePeriod):
                module.solver = replace(module.solver, reducer=reducer)
            elif isinstance(module, BatchNorm) and sync_norm:
                module.reducer = reducer
        # the stride of a dimension of one channel means nothing, and differs between a weight and its gradient
        warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
        self.wrapped.append(DistributedDataParallel(network))
        return self.wrapped[-1]

    def release(self) -> None:
        """Empty the networks that `wrap` returned, because each of them keeps the process group alive.

        A group's threads end with its last reference. If one remains while Python ends, as in a traceback, its
        process dies of SIGABRT when it frees its last tensor (pytorch issue 190489). The last reference must not be
        DistributedDataParallel's reducer either: it joins the threads while it holds the interpreter's lock, for
        which they may be waiting (56297).
        """
        for wrapped in self.wrapped:
            vars(wrapped).clear()
        self.wrapped.clear()

    def check_share(self, images: int) -> None:
        """Raise InputError if a batch of so many images leaves a rank without one."""
        if images < self.world:
            given = f"the last batch of an epoch has {images} images for {self.world} ranks"
            raise InputError(f"{given}; change the recipe's batch or its drop_last")

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over all ranks."""
        return RankReducer().sum(values) if self.grouped else values

    def largest(self, value: int) -> int:
        """Return the largest value of any rank. It is exchanged by the CPUs, so that no GPU is waited for."""
        return int(RankReducer().max(torch.tensor(float(value)))) if self.grouped else value

    def from_rank_0(self, act: Callable[[], T]) -> T:
        """Call `act` on rank 0 alone and return its result on every rank; an InputError is raised on every rank."""
        if not self.grouped:
            return act()
        answer: list[Any] = [None, None]  # the result, or the error's message
        if self.rank == 0:
            try:
                answer[0] = act()
            except InputError as error:
                answer[1] = str(error)
        dist.broadcast_object_list(answer, device=torch.device("cpu"))
        if answer[1] is not None:
            raise InputError(answer[1])
        return answer[0]

    @torch.no_grad()
    def copy_from_rank_0(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite every rank's tensors with those of rank 0."""
        if self.grouped:
            for tensor in tensors:
                value = tensor.contiguous()
                dist.broadcast(value, 0)
                tensor.copy_(value)


@contextmanager
def join(device: torch.device) -> Iterator[tuple[Ranks, torch.device]]:
    """Join the other ranks if torchrun started this process, and leave them at the end.

    Yields the ranks and this rank's own device. A process group that exists already is used and not destroyed.
    """
    started = not dist.is_initialized()
    if started:
        world = _whole_number("WORLD_SIZE", 1, low=1)
        if world == 1:
            yield Ranks(), device
            return
        _check_variables(world)
    if device.type == "cuda":
        local = _whole_number("LOCAL_RANK")
        local_ranks = _whole_number("LOCAL_WORLD_SIZE", local + 1, low=1)
        if local_ranks > (gpus := torch.cuda.device_count()):
            given = f"{local_ranks} ranks given for the {gpus} GPU(s) of this machine"
            raise InputError(f"{given}; start at most {gpus}, or train on the device cpu")
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    if started:
        _start_process_group(device)
    ranks = Ranks(dist.get_rank(), dist.get_world_size(), grouped=True)
    try:
        yield ranks, device
        if started:
            dist.barrier()  # no rank leaves while another still reads from it
    finally:
        ranks.release()
        if started:
            dist.destroy_process_group()


def _check_variables(world: int) -> None:
    """Raise InputError unless the variables that torchrun sets are there and can be."""
    missing = [name for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise InputError(f"WORLD_SIZE={world} given without {', '.join(missing)}; start several ranks with torchrun")
    rank, local, _ = (_whole_number(name) for name in ("RANK", "LOCAL_RANK", "MASTER_PORT"))
    _whole_number("LOCAL_WORLD_SIZE", local + 1, low=1)
    if rank >= world:
        raise InputError(f"RANK={rank} given of WORLD_SIZE={world}; it must be a whole number from 0 to {world - 1}")


def _whole_number(name: str, default: int = 0, low: int = 0) -> int:
    """Read a whole number from a variable that torchrun sets."""
    text = os.environ.get(name, str(default))
    if not (text.isascii() and text.isdigit() and int(text) >= low):
        raise InputError(f"{name}={text} given; it must be a whole number from {low} on, or be left to torchrun")
    return int(text)


def _start_process_group(device: torch.device) -> None:
    """Start a process group under a number of its own, because the store still holds an earlier group's addresses."""
    # Its functions have the group that exists when it is imported as a default argument, which would keep that group
    # alive to the end of the process (see `release`); torch._dynamo imports it, so it must be imported before.
    import torch.distributed.nn.functional  # noqa: F401

    store, rank, world = next(iter(rendezvous("env://")))
    number = (store.add("rkcnn/joined", 1) - 1) // world
    backend, bound = ("cpu:gloo,cuda:nccl", device) if device.type == "cuda" else ("gloo", None)
    dist.init_process_group(
        backend, store=PrefixStore(f"rkcnn/{number}", store), rank=rank, world_size=world, device_id=bound
    )
