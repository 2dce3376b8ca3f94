"""Small networks whose norms have statistics and weights as after a training, and images for them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rkcnn.model.create import create_model
from rkcnn.model.network import Network


def trained(network: nn.Module, seed: int = 0) -> nn.Module:
    """The network with random statistics and weights of its norms, as after a training."""
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d | nn.GroupNorm):
            with torch.no_grad():
                module.weight.copy_(torch.rand(module.weight.shape, generator=generator) + 0.5)
                module.bias.copy_(torch.randn(module.bias.shape, generator=generator) / 2)
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.copy_(torch.randn(module.running_mean.shape, generator=generator) / 2)
            module.running_var.copy_(torch.rand(module.running_var.shape, generator=generator) * 2 + 0.1)
    return network


def build(name: str, channels: int = 3, seed: int = 0) -> Network:
    torch.manual_seed(seed)
    network = create_model(name, 10, channels)
    assert isinstance(network, Network)
    trained(network, seed)
    return network.eval()


def images(network: Network, count: int = 3) -> Tensor:
    side = network.smallest + 3
    return torch.randn(count, network.channels, side, side + 2, generator=torch.Generator().manual_seed(1))


def distance(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max() / expected.abs().max())
