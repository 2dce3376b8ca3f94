"""Initial weights."""

from __future__ import annotations

from torch import nn


def initialise_he(network: nn.Module) -> None:
    """The paper's for SVHN and CIFAR: convolutions N(0, 2 / fan-in), linear layers Xavier with zero bias.

    Norms (1, 0) and convolution biases keep torch's defaults: the authors' convolutions have none.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
