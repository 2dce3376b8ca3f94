"""Several processes that train one network together."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from rkcnn.error import InputError


@dataclass(frozen=True)
class Ranks:
    """Which of how many processes this is; one alone is the ordinary case. Only rank 0 writes."""

    rank: int = 0
    world: int = 1

    @property
    def writes(self) -> bool:
        return self.rank == 0

    def wrap(self, network: nn.Module) -> nn.Module:
        """The network whose backward pass averages gradients over all ranks."""
        if self.world == 1:
            return network
        return DistributedDataParallel(network, broadcast_buffers=False)

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all ranks."""
        if self.world > 1:
            values = values.clone()
            dist.all_reduce(values)
        return values


def join(device: torch.device) -> tuple[Ranks, torch.device]:
    """Join the other ranks if torchrun started this process; each gets a device of its own."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Ranks(), device
    local = int(os.environ["LOCAL_RANK"])
    if device.type == "cuda":
        here = torch.cuda.device_count()
        if int(os.environ.get("LOCAL_WORLD_SIZE", world)) > here:
            raise InputError(
                f"{os.environ['LOCAL_WORLD_SIZE']} ranks given for {here} GPUs on this machine; start at most {here}"
            )
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return Ranks(dist.get_rank(), dist.get_world_size()), device
