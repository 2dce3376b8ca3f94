"""The class that all published originals share."""

from __future__ import annotations

from typing import NoReturn

from torch import Tensor, nn

from rkcnn.error import InputError
from rkcnn.model.network import check_images


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

    def forward(self, images: Tensor) -> Tensor:
        check_images(self.name, self.channels, self.smallest, images)
        return self.classifier(self.features(images))
