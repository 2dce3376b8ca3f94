"""In which order a network's numbers lie in memory: channels last, or one channel after the other."""

from __future__ import annotations

import torch
from torch import nn

from rkcnn.model.batch_norm import BatchNorm


def choose_layout(network: nn.Module, device: torch.device) -> torch.memory_format:
    """Return the layout in which a network is fastest.

    Tensor cores are fastest with channels last. So is a CPU, unless there is a group norm, which torch computes many
    times slower in that layout (docs/performance.md).
    """
    slower = device.type == "cpu" and any(isinstance(module, nn.GroupNorm) for module in network.modules())
    return torch.contiguous_format if slower else torch.channels_last


def set_layout(network: nn.Module, device: torch.device) -> torch.memory_format:
    """Bring the weights of a network that will be trained into the layout in which it is fastest; returns the layout.

    Its batch norms are told which one it is: with channels last, a CPU needs other sums for exact statistics.
    """
    layout = choose_layout(network, device)
    network.to(memory_format=layout)  # type: ignore[call-overload]
    for module in network.modules():
        if isinstance(module, BatchNorm):
            module.by_rows = layout == torch.channels_last
    return layout
