"""The class that all published originals share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from torch import Tensor, nn

from rkcnn.error import InputError
from rkcnn.model.network import check_images

if TYPE_CHECKING:
    from rkcnn.model.fused import FusedNetwork


class Published(nn.Module):
    """images -> `features` -> one linear classifier; a subclass writes `features` as its authors did."""

    name: str
    smallest: int = 8  # height and width of an image: after two halvings 2 x 2 pixels are left for the norms

    def __init__(self, classes: int, channels: int, width: int) -> None:
        super().__init__()
        self.channels = channels
        self.classifier = nn.Linear(width, classes)

    def features(self, images: Tensor) -> Tensor:
        """Return vectors of shape (batch, width) for the classifier."""
        raise NotImplementedError

    def trajectory(self, images: Tensor) -> NoReturn:
        """Raise InputError: published originals are not divided into periods and time-steps."""
        raise InputError(
            f"{self.name} is a published original and has no time-steps; networks with @ in their name have"
        )

    def fused(self, precision: str = "fp32", *, engine: str = "auto", images: int | None = None) -> FusedNetwork:
        """Return a copy for inference alone: batch norms folded into convolutions, channels last, on this device.

        `precision` is fp32, tf32 or bf16. `engine` is eager, compile or graph (compiled, as one CUDA graph for each
        size of batch), or auto: the fastest for so many `images` if their number is given, otherwise graph on a GPU
        and eager on a CPU.
        """
        from rkcnn.model.fused import FusedNetwork

        return FusedNetwork(self, precision, engine, images)

    def forward(self, images: Tensor) -> Tensor:
        check_images(self.name, self.channels, self.smallest, images)
        return self.classifier(self.features(images))
