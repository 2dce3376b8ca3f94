"""What the published originals have in common."""

from __future__ import annotations

from typing import NoReturn

from torch import Tensor, nn

from rkcnn.error import InputError
from rkcnn.model.network import check_images


class Published(nn.Module):
    """images -> `features` -> one linear classifier; a subclass fills in what its authors drew."""

    name: str
    smallest: int = 8  # pixels on a side: 2 x 2 are left for the norms after two halvings

    def __init__(self, classes: int, channels: int, width: int) -> None:
        super().__init__()
        self.channels = channels
        self.classifier = nn.Linear(width, classes)

    def features(self, images: Tensor) -> Tensor:
        """(batch, width) vectors for the classifier."""
        raise NotImplementedError

    def trajectory(self, images: Tensor) -> NoReturn:
        """Only the one frame has periods and time-steps to look into."""
        raise InputError(
            f"{self.name} is a published original and has no time-steps; networks with @ in their name have"
        )

    def forward(self, images: Tensor) -> Tensor:
        check_images(self.name, self.channels, self.smallest, images)
        return self.classifier(self.features(images))
