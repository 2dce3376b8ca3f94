"""What a network says of every image of a set."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rkcnn.data.batches import Batches
from rkcnn.data.images import Images

BATCH = 1000  # the ODE-Net script's; results do not depend on it but for the paper's abm row (SPEC 4)


class Predictor:
    """A set of images held on the device, to be asked about again and again."""

    def __init__(self, images: Images, device: torch.device, precision: str = "fp32", batch: int = BATCH) -> None:
        self.images, self.device, self.precision = images, device, precision
        self.batches = Batches(images, min(batch, len(images)), seed=0, shuffle=False, device=device)

    @torch.no_grad()
    def logits(self, network: nn.Module) -> Tensor:
        """float32 (N, classes) on the device, in the order of the images; the network is left as it was."""
        training = network.training
        network.eval()
        found = []
        for batch in self.batches.epoch(0):
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.precision == "bf16"):
                found.append(network(batch.pixels).float())
        network.train(training)
        return torch.cat(found)

    def predictions(self, network: nn.Module) -> Tensor:
        """int64 (N,): the class of the largest logit."""
        return self.logits(network).argmax(1)

    def error(self, predictions: Tensor) -> float:
        """The share that is wrong."""
        return float((predictions.cpu() != self.images.labels).double().mean())
