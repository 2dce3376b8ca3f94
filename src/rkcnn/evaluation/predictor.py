"""Predictions of a network for every image of a set."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rkcnn.data.batches import Batches
from rkcnn.data.images import Images

BATCH = 1000  # as in the ODE-Net script; only the paper's abm row depends on it (docs/spec.md, 4)


class Predictor:
    """Holds a set of images on a device and predicts their classes with any network, as often as needed."""

    def __init__(self, images: Images, device: torch.device, precision: str = "fp32", batch: int = BATCH) -> None:
        self.images, self.device, self.precision = images, device, precision
        self.batches = Batches(images, min(batch, len(images)), seed=0, shuffle=False, device=device)

    @torch.no_grad()
    def logits(self, network: nn.Module) -> Tensor:
        """Return float32 (N, classes) logits on the device, in the order of the images; the network stays unchanged."""
        training = network.training
        network.eval()
        logits = []
        for batch in self.batches.epoch(0):
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.precision == "bf16"):
                logits.append(network(batch.pixels).float())
        network.train(training)
        return torch.cat(logits)

    def predictions(self, network: nn.Module) -> Tensor:
        """Return int64 (N,) classes, those of the largest logits."""
        return self.logits(network).argmax(1)

    def error(self, predictions: Tensor) -> float:
        """Return the fraction of the predictions that is wrong."""
        return float((predictions.cpu() != self.images.labels).double().mean())
