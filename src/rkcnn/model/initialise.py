"""Initial weights."""

from __future__ import annotations

from torch import nn

from rkcnn.model.layers import Conv
from rkcnn.model.network import Network


def initialise(network: nn.Module, how: str = "frame") -> None:
    """Draw initial weights: `he`, `torch` (its defaults, already drawn), or `frame`, the paper's choice.

    That is torch's defaults for one period, and `he` for several and for the published originals (docs/spec.md, 5).
    """
    one_period = isinstance(network, Network) and network.spec.periods == 1
    if how == "he" or (how == "frame" and not one_period):
        _he(network)


def _he(network: nn.Module) -> None:
    """Draw convolutions from N(0, 2 / fan-in) and linear layers by Xavier's rule with zero bias.

    Norms (1, 0) and convolution biases keep torch's defaults: the authors' convolutions have no bias.
    """
    for module in network.modules():
        if any(weight.is_meta for weight in module.parameters(recurse=False)):
            continue  # meta tensors hold no numbers, and drawing takes a millisecond each
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
            if isinstance(module, Conv):
                module.scale_blocks()
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
