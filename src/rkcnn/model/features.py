"""The features of each period of a network: what the classifier reads, before it is averaged over the picture."""

from __future__ import annotations

from torch import Tensor, nn

from rkcnn.model.layers import frozen_norms
from rkcnn.model.network import Network
from rkcnn.model.published.network import Published


def period_features(network: nn.Module, images: Tensor) -> list[Tensor]:
    """Return the state (N, channels, height, width) that each period ends with, for normalised images.

    Gradients flow to the images and the weights. The network stays as it was: in training mode too, no batch norm
    updates its running statistics. A published original has no periods: it gives one tensor (N, width), which its
    classifier reads.
    """
    with frozen_norms(network):
        if isinstance(network, Published):
            return [network.features(images)]
        assert isinstance(network, Network)
        found: list[Tensor] = []
        hooks = [
            period.register_forward_hook(lambda period, inputs, outputs: found.append(outputs[1]))
            for period in network.periods
        ]
        try:
            network(images)
        finally:
            for hook in hooks:
                hook.remove()
        return found
