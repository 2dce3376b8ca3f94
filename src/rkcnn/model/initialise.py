"""Initial weights."""

from __future__ import annotations

from torch import nn

from rkcnn.model.network import Network


def initialise(network: nn.Module, how: str = "frame") -> None:
    """`he`, or torch's defaults as they stand after construction; `frame` is the paper's choice (SPEC 5).

    That is torch's defaults for one period, and `he` for several and for the published originals.
    """
    one_period = isinstance(network, Network) and network.spec.periods == 1
    if how == "he" or (how == "frame" and not one_period):
        _he(network)


def _he(network: nn.Module) -> None:
    """Convolutions N(0, 2 / fan-in), linear layers Xavier with zero bias.

    Norms (1, 0) and convolution biases keep torch's defaults: the authors' convolutions have none.
    """
    for module in network.modules():
        if any(weight.is_meta for weight in module.parameters(recurse=False)):
            continue  # nothing is there to be filled, and drawing nothing takes a millisecond each
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
